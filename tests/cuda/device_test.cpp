/// Opening devices: choice, refusals, faults. session_test.cpp tests programs on devices.
#include "device.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/backend/cuda.hpp>
#include <isotope/core/backend_list.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cctype>
#include <cmath>

namespace isotope::cuda {
namespace device_test {

using f32 = target<backend::cuda, precision::f32, kernels::reference>;
using cuda_test::emulator;
using isotope_emulated::device_description;
static_assert(backend::cuda::preference > backend::cpu::preference);

bool says(const failure& f, std::string_view text) { return f.line().find(text) != std::string::npos; }

/// Tests of refusals use the emulated driver, whether or not there is a GPU.
struct cuda_refusals : testing::Test {
  cuda_test::emulator_settings restored;
  options o = cuda_test::emulated_options();
  void SetUp() override {
    if (!emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
  }
};

TEST(cuda_device, opens_by_index_name_part_and_kind) {
  auto& shared = cuda_test::test_device();
  const std::string name = shared.context->physical().name;
  std::string upper = name.substr(0, 5);
  for (char& c : upper) c = char(std::toupper(c));
  for (const std::string& asked : {std::string(), std::string("0"), upper, std::string("discrete")}) {
    auto o = cuda_test::test_options();
    o.name = asked;
    const auto d = device<f32>::open(o);
    ASSERT_TRUE(d.ok()) << asked << ": " << d.error().line();
    EXPECT_EQ(d->info().name, name);
    EXPECT_EQ(d->info().backend, "cuda");
    EXPECT_EQ(d->info().problem, "");
  }
}
TEST(cuda_device, an_unknown_name_is_an_error_that_lists_what_there_is) {
  auto& shared = cuda_test::test_device();
  auto o = cuda_test::test_options();
  o.name = "voodoo";
  const auto d = device<f32>::open(o);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::unknown_device);
  EXPECT_TRUE(says(d.error(), "voodoo")) << d.error().line();
  EXPECT_TRUE(says(d.error(), "0 " + shared.context->physical().name)) << d.error().line();
}
TEST(cuda_device, architectures_run_on_what_their_code_is_made_for) {
  for (const auto& [list, compute, runs] :
       {std::tuple("80", 80, true), std::tuple("80", 86, true), std::tuple("86", 80, false), std::tuple("80", 90, false),
        std::tuple("90a", 90, true), std::tuple("90a", 100, false), std::tuple("90a", 91, false), std::tuple("compute_80", 120, true),
        std::tuple("compute_80", 75, false), std::tuple("80,90a,120", 120, true), std::tuple("80,90a", 120, false),
        std::tuple("", 80, false)})
    EXPECT_EQ(runs_on(list, compute), runs) << list << " on " << compute;
}
TEST(cuda_device, memory_that_the_device_cannot_give_is_refused_with_the_bytes_asked_for_and_those_that_are_free) {
  auto& d = cuda_test::test_device();
  const std::int64_t huge = std::int64_t(1) << 52;
  const auto m = memory::allocate(d.context, huge, memory_use::device, "huge");
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, errc::out_of_memory);
  EXPECT_TRUE(says(m.error(), std::to_string(huge))) << m.error().line();
  EXPECT_TRUE(says(m.error(), std::to_string(d.context->free_bytes()))) << m.error().line();
}
TEST(cuda_device, without_a_driver_there_is_an_error_that_says_what_was_looked_for) {
  options o;
  o.diagnose.driver_library = "libno-such-driver.so.9";
  const auto d = device<f32>::open(o);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::no_device);
  EXPECT_TRUE(says(d.error(), "libno-such-driver.so.9")) << d.error().line();
  EXPECT_TRUE(says(d.error(), "install")) << d.error().line();
}
TEST(cuda_device, a_library_without_the_entry_points_is_a_driver_that_is_too_old) {
  options o;
  o.diagnose.driver_library = "libm.so.6";
  const auto d = device<f32>::open(o);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::missing_feature) << d.error().line();
}
TEST(cuda_device, a_limit_on_waiting_is_a_number_of_seconds_from_0_on) {
  for (const double seconds : {-1.0, -1e300, std::nan("")}) {
    auto o = cuda_test::test_options();
    o.timeout_seconds = seconds;
    const auto d = device<f32>::open(o);
    ASSERT_FALSE(d.ok()) << seconds;
    EXPECT_EQ(d.error().code, errc::invalid_argument);
  }
}
TEST(cuda_device, blocks_of_a_size_that_the_device_does_not_take_are_refused) {
  const auto threads = cuda_test::test_device().context->physical().limits.threads;
  for (const std::int32_t size : {0, -2, threads + 1}) {
    auto o = cuda_test::test_options();
    o.diagnose.launch_size = size;
    const auto d = device<f32>::open(o);
    ASSERT_FALSE(d.ok()) << size;
    EXPECT_EQ(d.error().code, errc::invalid_argument);
    EXPECT_TRUE(says(d.error(), std::to_string(size))) << d.error().line();
  }
}
TEST(cuda_device, two_backends_live_in_one_program) {
  using both = backend_list<backend::cuda>;
  EXPECT_TRUE(both::find("cuda").ok());
  EXPECT_EQ(both::find("vulkan").error().code, errc::not_compiled_in);
}

TEST_F(cuda_refusals, a_driver_older_than_the_entry_points_is_named_with_its_version) {
  emulator().set_version(11040);
  const auto d = device<f32>::open(o);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::missing_feature);
  EXPECT_TRUE(says(d.error(), "11.4")) << d.error().line();
  EXPECT_TRUE(says(d.error(), "12.0")) << d.error().line();
  EXPECT_TRUE(says(d.error(), "update the driver")) << d.error().line();
}
TEST_F(cuda_refusals, a_driver_older_than_the_compiler_of_the_kernels_is_told_with_both_versions) {
  emulator().set_version(fatbins::needs.driver_version);
  const auto d = device<f32>::open(o);
  ASSERT_TRUE(d.ok()) << d.error().line();
  EXPECT_EQ(d->info().driver, "CUDA " + driver::version_text(fatbins::needs.driver_version));
  emulator().set_version(fatbins::needs.driver_version - 10);
  const auto older = device<f32>::open(o);
  ASSERT_FALSE(older.ok());
  EXPECT_EQ(older.error().code, errc::missing_feature);
  for (const int v : {fatbins::needs.driver_version, fatbins::needs.driver_version - 10})
    EXPECT_TRUE(says(older.error(), "CUDA " + driver::version_text(v)) || says(older.error(), "offers " + driver::version_text(v)))
        << older.error().line();
}
TEST_F(cuda_refusals, a_device_below_8_0_is_told_so_and_not_to_build_for_it) {
  emulator().set_devices({{.name = "old card", .compute = 75}});
  const auto d = device<f32>::open(o);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::missing_feature);
  for (const char* text : {"old card", "8.0", "7.5"}) EXPECT_TRUE(says(d.error(), text)) << text << ": " << d.error().line();
  EXPECT_FALSE(says(d.error(), "CUDA_ARCHS")) << d.error().line();
}
TEST_F(cuda_refusals, a_machine_without_a_device_is_one_without_a_device) {
  emulator().set_devices({});
  const auto d = device<f32>::open(o);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::no_device);
  EXPECT_TRUE(says(d.error(), "no device")) << d.error().line();
}
TEST_F(cuda_refusals, a_driver_that_does_not_start_is_named_with_its_result) {
  emulator().set_fault("cuInit", 803);
  const auto d = device<f32>::open(o);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::no_device);
  EXPECT_TRUE(says(d.error(), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")) << d.error().line();
}
TEST_F(cuda_refusals, an_architecture_that_the_build_has_no_code_for_is_told_with_those_that_it_has) {
  emulator().set_devices({{.name = "other card", .compute = 80}});
  if (runs_on(fatbins::architectures, 80)) GTEST_SKIP() << "the build has code for every device";
  const auto d = device<f32>::open(o);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::missing_feature);
  for (const std::string_view text :
       {std::string_view("other card"), std::string_view("80"), fatbins::architectures, std::string_view("CUDA_ARCHS")})
    EXPECT_TRUE(says(d.error(), text)) << text << ": " << d.error().line();
}
TEST_F(cuda_refusals, a_device_without_code_is_passed_over_unless_it_is_asked_for) {
  emulator().set_devices({{.name = "old card", .compute = 70}, {.name = "good card", .compute = cuda_test::emulated_compute()}});
  const auto d = device<f32>::open(o);
  ASSERT_TRUE(d.ok()) << d.error().line();
  EXPECT_EQ(d->info().name, "good card");
  EXPECT_EQ(d->info().index, 1);
  o.name = "old";
  const auto old = device<f32>::open(o);
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().code, errc::missing_feature);
}
struct square_of_input {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return square(s.input("x", {1 << 10, 1 << 10})); }
};
TEST_F(cuda_refusals, a_plan_that_does_not_fit_is_refused_with_planned_and_free_bytes) {
  emulator().set_devices({{.compute = cuda_test::emulated_compute(), .memory = 6 << 20}});
  const auto d = device<f32>::open(o);
  ASSERT_TRUE(d.ok()) << d.error().line();
  auto plan = plan_inference<f32>(square_of_input{});
  ASSERT_TRUE(plan.ok());
  const auto s = d->load(*std::move(plan));
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, errc::out_of_memory);
  const auto free = d->shared()->free_bytes();
  EXPECT_EQ(free, 6 << 20) << "what was allocated before is given back";
  EXPECT_TRUE(says(s.error(), " bytes were asked for, ")) << s.error().line();
  EXPECT_TRUE(says(s.error(), " are free")) << s.error().line();
}
TEST_F(cuda_refusals, what_the_driver_refuses_while_a_plan_is_loaded_has_its_own_code_and_leaves_nothing_behind) {
  const auto d = device<f32>::open(o);
  ASSERT_TRUE(d.ok()) << d.error().line();
  { ASSERT_TRUE(d->load(*plan_inference<f32>(square_of_input{})).ok()); }  // what stays for the next session exists now
  const auto before = emulator().live();
  struct {
    const char* entry;
    int status;
    errc code;
  } const cases[] = {{"cuMemAlloc", 2, errc::out_of_memory},
                     {"cuMemHostAlloc", 2, errc::out_of_memory},
                     {"cuGraphCreate", 2, errc::out_of_memory},
                     {"cuGraphAddKernelNode", 2, errc::out_of_memory},
                     {"cuGraphInstantiateWithFlags", 2, errc::out_of_memory},
                     {"cuGraphLaunch", 2, errc::out_of_memory},
                     {"cuGraphLaunch", 700, errc::device_lost},
                     {"cuEventRecord", 719, errc::device_lost}};
  for (const auto& c : cases) {
    const auto own = device<f32>::open(o);
    ASSERT_TRUE(own.ok());
    emulator().set_fault(c.entry, c.status);
    {
      auto s = own->load(*plan_inference<f32>(square_of_input{}));
      const auto status = s ? (s->run({}), s->status()) : result<void>(s.error());
      ASSERT_FALSE(status.ok()) << c.entry;
      EXPECT_EQ(status.error().code, c.code) << c.entry << ": " << status.error().line();
      EXPECT_FALSE(status.error().fix.empty()) << c.entry;
    }
    emulator().set_fault(nullptr, 0);
    if (c.code == errc::device_lost) continue;
    const auto after = emulator().live();
    EXPECT_EQ(after.allocations, before.allocations) << c.entry;
    EXPECT_EQ(after.host_allocations, before.host_allocations) << c.entry;
    EXPECT_EQ(after.graphs, before.graphs) << c.entry;
    EXPECT_EQ(after.executables, before.executables) << c.entry;
  }
}
TEST_F(cuda_refusals, code_that_the_device_cannot_run_is_a_missing_feature_with_the_name_of_the_file) {
  const auto d = device<f32>::open(o);
  ASSERT_TRUE(d.ok()) << d.error().line();
  for (const int status : {200, 209, 222}) {
    emulator().set_fault("cuLibraryLoadData", status);
    const auto own = device<f32>::open(o);
    auto s = own->load(*plan_inference<f32>(square_of_input{}));
    const auto what = s ? (s->run({}), s->status()) : result<void>(s.error());
    ASSERT_FALSE(what.ok()) << status;
    EXPECT_EQ(what.error().code, errc::missing_feature) << what.error().line();
    EXPECT_TRUE(says(what.error(), "reference_elementwise")) << what.error().line();
  }
}
TEST_F(cuda_refusals, a_kernel_that_fails_loses_the_device_and_a_device_opened_again_goes_on) {
  cuda_test::run_alone([&] {
    for (const int status : {700, 715, 716, 719}) {
      {
        const auto d = device<f32>::open(o);
        ASSERT_TRUE(d.ok()) << d.error().line();
        auto s = d->load(*plan_inference<f32>(square_of_input{}));
        ASSERT_TRUE(s.ok()) << s.error().line();
        s->run({});
        ASSERT_TRUE(s->status().ok());
        emulator().set_fault("kernel", status);
        s->run({});
        ASSERT_FALSE(s->status().ok());
        EXPECT_EQ(s->status().error().code, errc::device_lost) << s->status().error().line();
        EXPECT_TRUE(d->shared()->lost());
      }
      const auto again = device<f32>::open(o);
      ASSERT_TRUE(again.ok()) << again.error().line();
      auto s = again->load(*plan_inference<f32>(square_of_input{}));
      ASSERT_TRUE(s.ok()) << s.error().line();
      s->run({});
      EXPECT_TRUE(s->status().ok()) << s->status().error().line();
    }
  });
}
TEST_F(cuda_refusals, work_that_does_not_end_is_a_timeout) {
  cuda_test::run_alone([&] {
    o.timeout_seconds = 0.05;
    const auto d = device<f32>::open(o);
    ASSERT_TRUE(d.ok()) << d.error().line();
    auto s = d->load(*plan_inference<f32>(square_of_input{}));
    ASSERT_TRUE(s.ok()) << s.error().line();
    emulator().set_fault("cuEventQuery", 600, 0, -1);
    s->run({});
    ASSERT_FALSE(s->status().ok());
    EXPECT_EQ(s->status().error().code, errc::timeout) << s->status().error().line();
    EXPECT_TRUE(says(s->status().error(), "0.05")) << s->status().error().line();
  });
}

}  // namespace device_test
}  // namespace isotope::cuda
