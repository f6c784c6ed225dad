/// What happens after a failure: nothing waits for a device that hangs, nothing reads tables that are not there, and every result of the driver has its own code.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <memory>
#include <vector>

namespace isotope::cuda {
namespace failures_test {

using f32 = target<backend::cuda, precision::f32, kernels::portable>;

bool says(const failure& f, std::string_view text) { return f.line().find(text) != std::string::npos; }

struct cuda_failures : testing::Test {
  cuda_test::emulator_settings restored;
  options o = cuda_test::emulated_options();
  const isotope_emulated::emulator& emulator = cuda_test::emulator();
  void SetUp() override {
    if (!emulator.there()) GTEST_SKIP() << "the emulated driver is not there";
  }
};

struct square_of_input {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return square(s.input("x", {1 << 10})); }
};
/// rope has a table that depends on the length of the sequence.
struct rotated {
  dim positions;
  template <Machine M> tensor<M> operator()(scope<M> s) const { return rope(s.input("x", {1, positions, 1, 8})); }
};

/// Ends the hang after everything that is declared later has ended.
struct hanging {
  const isotope_emulated::emulator& emulator;
  explicit hanging(const isotope_emulated::emulator& e) : emulator(e) {}
  hanging(const hanging&) = delete;
  hanging& operator=(const hanging&) = delete;
  ~hanging() { emulator.set_hung(false); }
};
/// The emulated driver aborts the program where it calls what would wait for a device that hangs.
TEST_F(cuda_failures, after_a_timeout_nothing_waits_for_the_device_to_the_end_of_the_program) {
  cuda_test::run_alone([&] {
    o = cuda_test::library_options();
    o.timeout_seconds = 0.05;
    enum class way { run, observe, profile, read, two_in_flight };
    for (const way how : {way::run, way::observe, way::profile, way::read, way::two_in_flight}) {
      const hanging until_all_have_ended(emulator);
      const auto opened = device<f32>::open(o);
      ASSERT_TRUE(opened.ok()) << opened.error().line();
      const auto& d = *opened;
      auto s = d.load(*plan_inference<f32>(square_of_input{}));
      ASSERT_TRUE(s.ok()) << s.error().line();
      auto other = d.load(*plan_inference<f32>(square_of_input{}));
      ASSERT_TRUE(other.ok());
      const auto buffer = d.allocate<float>(100);
      ASSERT_TRUE(buffer.ok());
      s->run({});
      ASSERT_TRUE(s->status().ok());
      emulator.set_hung(true);
      if (how == way::run) s->run({});
      if (how == way::observe) s->observe({}, [](std::size_t) {});
      if (how == way::profile) { EXPECT_FALSE(s->profile({}).ok()); }
      if (how == way::read) { EXPECT_EQ(s->numbers(s->plan().operands[1]).error().code, errc::timeout); }
      if (how == way::two_in_flight) {
        other->run({});
        s->run({});
      }
      if (how != way::read) {
        ASSERT_FALSE(s->status().ok());
        EXPECT_TRUE(how == way::two_in_flight || s->status().error().code == errc::timeout) << s->status().error().line();
      }
      EXPECT_TRUE(d.shared()->hung());
      EXPECT_TRUE(d.shared()->lost());
      const auto late = d.load(*plan_inference<f32>(square_of_input{}));
      EXPECT_FALSE(late.ok());
      // The sessions, the buffer and the device end here, while the device hangs.
      *s = *std::move(other);  // one ends before
    }
  });
}

TEST_F(cuda_failures, a_table_that_has_no_memory_is_an_error_before_a_kernel_reads_it) {
  enum class way { run, observe, profile };
  for (const way how : {way::run, way::observe, way::profile}) {
    const auto d = device<f32>::open(o);
    ASSERT_TRUE(d.ok());
    auto s = d->load(*plan_inference<f32>(rotated{scalar_dim{1000, 0}}));
    ASSERT_TRUE(s.ok()) << s.error().line();
    step_scalars x;
    x.sizes[0] = 700;
    emulator.set_fault("cuMemAlloc", 2);
    const auto submits = d->shared()->counters.submits.load();
    if (how == way::run) s->run(x, phase_always);
    if (how == way::observe) s->observe(x, [](std::size_t) { ADD_FAILURE() << "a step ran"; }, phase_always);
    if (how == way::profile) { EXPECT_FALSE(s->profile(x, phase_always).ok()); }
    EXPECT_EQ(d->shared()->counters.submits.load(), submits);
    ASSERT_FALSE(s->status().ok());
    EXPECT_EQ(s->status().error().code, errc::out_of_memory) << s->status().error().line();
    EXPECT_TRUE(says(s->status().error(), "isotope constants")) << s->status().error().line();
  }
}

TEST_F(cuda_failures, a_device_that_shares_the_hosts_memory_gives_more_than_is_free) {
  constexpr std::int64_t asked = 32 << 20;
  for (const bool integrated : {false, true}) {
    emulator.set_devices(
        {{.compute = cuda_test::emulated_compute(), .memory = std::size_t(integrated ? 64 : 16) << 20, .integrated = integrated}});
    const auto c = context::open(o, fatbins::needs);
    ASSERT_TRUE(c.ok()) << c.error().line();
    EXPECT_LT((*c)->free_bytes(), asked);
    const auto calls = emulator.calls("cuMemAlloc");
    const auto m = memory::allocate(*c, asked, memory_use::device, "a tensor");
    EXPECT_EQ(m.ok(), integrated);
    EXPECT_EQ(emulator.calls("cuMemAlloc"), calls + (integrated ? 1 : 0)) << "the driver is asked, and the free bytes are not";
    const auto huge = memory::allocate(*c, 64 * asked, memory_use::device, "a tensor");
    ASSERT_FALSE(huge.ok());
    EXPECT_EQ(huge.error().code, errc::out_of_memory);
  }
}
TEST_F(cuda_failures, memory_is_not_refused_where_the_driver_does_not_say_what_is_free) {
  const auto c = context::open(o, fatbins::needs);
  ASSERT_TRUE(c.ok());
  emulator.set_fault("cuMemGetInfo", 801);
  EXPECT_TRUE(memory::allocate(*c, 1 << 20, memory_use::device, "a tensor").ok());
}

TEST_F(cuda_failures, results_of_the_driver_are_errors_of_their_own_kind) {
  const auto d = driver::open(cuda_test::emulated_driver);
  ASSERT_TRUE(d.ok());
  struct {
    int status;
    errc code;
  } const cases[] = {
      {1, errc::missing_feature},   {2, errc::out_of_memory},     {3, errc::no_device},         {34, errc::no_device},
      {46, errc::no_device},        {100, errc::no_device},       {101, errc::no_device},       {201, errc::missing_feature},
      {209, errc::missing_feature}, {214, errc::device_lost},     {218, errc::missing_feature}, {222, errc::missing_feature},
      {500, errc::missing_feature}, {700, errc::device_lost},     {701, errc::missing_feature}, {702, errc::device_lost},
      {709, errc::device_lost},     {710, errc::device_lost},     {716, errc::device_lost},     {719, errc::device_lost},
      {801, errc::missing_feature}, {802, errc::no_device},       {803, errc::no_device},       {805, errc::no_device},
      {810, errc::device_lost},     {900, errc::missing_feature}, {999, errc::device_lost},     {12345, errc::missing_feature}};
  for (const auto& c : cases) {
    const failure f = failed(**d, status(c.status), "asking the driver");
    EXPECT_EQ(f.code, c.code) << f.line();
    EXPECT_TRUE(says(f, "asking the driver") && says(f, "(" + std::to_string(c.status) + ")")) << f.line();
    EXPECT_FALSE(f.fix.empty());
    EXPECT_EQ(breaks_context(status(c.status)), c.code == errc::device_lost);
  }
}

}  // namespace failures_test
}  // namespace isotope::cuda
