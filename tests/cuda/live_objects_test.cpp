/// Every object of the driver ends with its owner.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <thread>
#include <vector>

namespace isotope_emulated {
inline bool operator==(const live_objects& a, const live_objects& b) {
  return a.contexts == b.contexts && a.allocations == b.allocations && a.host_allocations == b.host_allocations && a.streams == b.streams &&
         a.events == b.events && a.libraries == b.libraries && a.graphs == b.graphs && a.executables == b.executables;
}
inline void PrintTo(const live_objects& o, std::ostream* to) {
  *to << o.contexts << " contexts, " << o.allocations << " allocations, " << o.host_allocations << " on the host, " << o.streams
      << " streams, " << o.events << " events, " << o.libraries << " libraries, " << o.graphs << " graphs, " << o.executables
      << " executables";
}
}  // namespace isotope_emulated

namespace isotope::cuda {
namespace live_objects_test {

using f32 = target<backend::cuda, precision::f32, kernels::native>;
using isotope_emulated::live_objects;
constexpr model::gpt tiny{1, 2, 16, 20, 8};

struct cuda_live_objects : testing::Test {
  cuda_test::emulator_settings restored;
  static live_objects live() { return cuda_test::emulator().live(); }
  void SetUp() override {
    if (!cuda_test::emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
  }
};
/// Uses a buffer and a session: trains, evaluates, profiles and reads.
void use(const device<f32>& d) {
  auto s = d.load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}), *plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8}));
  ASSERT_TRUE(s.ok()) << s.error().line();
  s->initialize(3);
  const std::vector<std::int32_t> tokens(16, 7);
  const batch b{tokens, tokens};
  EXPECT_GT(s->step(b, {}).loss, 0);
  EXPECT_TRUE(s->profile({}).ok());
  EXPECT_GT(s->evaluate(b), 0);
  EXPECT_TRUE(d.allocate<float>(100).ok());
}

TEST_F(cuda_live_objects, end_with_the_session_that_made_them_and_all_with_the_device) {
  {
    const auto d = *isotope_test::there(device<f32>::open(cuda_test::emulated_options()));
    use(d);
    const auto first = live();
    EXPECT_EQ(first.allocations + first.host_allocations, 0);
    EXPECT_EQ(first.graphs, 0);
    EXPECT_EQ(first.executables, 0);
    EXPECT_EQ(first.streams, 1);
    EXPECT_EQ(first.contexts, 1);
    EXPECT_GT(first.libraries, 5) << "code stays for the next session";
    for (int i = 0; i < 3; ++i) use(d);
    EXPECT_EQ(live(), first);
  }
  EXPECT_EQ(live(), live_objects{});
}
TEST_F(cuda_live_objects, that_are_kept_are_seen) {
  const auto d = *isotope_test::there(device<f32>::open(cuda_test::emulated_options()));
  const auto before = live();
  device_address at = 0;
  const auto here = d.shared()->current();
  ASSERT_EQ(d.shared()->f()->allocate(&at, 256), status::success);
  EXPECT_EQ(live().allocations, before.allocations + 1);
  EXPECT_EQ(d.shared()->f()->free(at), status::success);
  EXPECT_EQ(live(), before);
}
TEST_F(cuda_live_objects, of_sessions_that_threads_load_beside_each_other_end_and_code_is_loaded_once) {
  const auto run = [&](int threads) {
    const auto d = *isotope_test::there(device<f32>::open(cuda_test::emulated_options()));
    std::vector<double> losses(std::size_t(threads), 0);
    std::vector<std::thread> all;
    for (auto& loss : losses)
      all.emplace_back([&d, &loss] {
        auto s = d.load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}));
        ASSERT_TRUE(s.ok()) << s.error().line();
        s->initialize(3);
        const std::vector<std::int32_t> tokens(16, 7);
        const batch b{tokens, tokens};
        for (int i = 0; i < 3; ++i) loss = s->step(b, {}).loss;
      });
    for (auto& t : all) t.join();
    return std::pair(live().libraries, losses);
  };
  const auto [libraries, alone] = run(1);
  EXPECT_GT(libraries, 5);
  const auto [same, losses] = run(4);
  EXPECT_EQ(same, libraries);
  EXPECT_EQ(losses, std::vector<double>(4, alone[0]));
  EXPECT_EQ(live(), live_objects{});
}
TEST_F(cuda_live_objects, end_when_a_session_cannot_be_made) {
  {
    const auto d = *isotope_test::there(device<f32>::open(cuda_test::emulated_options()));
    const auto before = live();
    // Every allocation in turn fails, until there are enough for a session.
    bool made = false;
    for (int after = 0; !made && after < 50; ++after) {
      cuda_test::emulator().set_fault("cuMemAlloc", 2, after);
      {
        const auto s = d.load(*plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8}));
        made = s.ok();
        if (!made) { EXPECT_EQ(s.error().code, errc::out_of_memory) << s.error().line(); }
      }
      const auto now = live();
      EXPECT_EQ(now.allocations, before.allocations) << after;
      EXPECT_EQ(now.host_allocations, before.host_allocations) << after;
      EXPECT_EQ(now.graphs, 0) << after;
      EXPECT_EQ(now.executables, 0) << after;
    }
    EXPECT_TRUE(made);
    cuda_test::emulator_settings::restore();
    use(d);
  }
  EXPECT_EQ(live(), live_objects{});
}

}  // namespace live_objects_test
}  // namespace isotope::cuda
