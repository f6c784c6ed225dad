/// DW-23: devices and sessions are used as before, without a worker. Each signature is one that programs rely on.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/train/session.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <vector>

namespace iso = isotope;
using target = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>;
using device = iso::device<target>;
using session = device::session;

static_assert(std::same_as<decltype(device::open()), iso::result<device>> && std::same_as<device::options, iso::device_options>);
static_assert(iso::Device<device> && iso::Queue<device::queue_type> && iso::train::TrainingSession<session>);
static_assert(std::copyable<device> && std::movable<session> && !std::copyable<session>);
static_assert(requires(const device& d, iso::dynamic_plan p, std::vector<iso::owned_plan> owned, std::span<const iso::named_plan> named) {
  { d.load(p) } -> std::same_as<iso::result<session>>;
  { d.load(p, p) } -> std::same_as<iso::result<session>>;
  { d.load(owned) } -> std::same_as<iso::result<session>>;
  { d.load(named) } -> std::same_as<iso::result<session>>;
  { d.allocate<float>(4) } -> std::same_as<iso::result<iso::buffer<float, device::queue_type>>>;
  { d.info() } -> std::same_as<iso::device_info>;
  { d.threads() } -> std::same_as<int>;
});
static_assert(requires(session& s, const iso::batch& b, const iso::step_scalars& x, std::span<float> out, std::span<const float> in) {
  s.initialize(std::uint64_t{});
  s.clear_states();
  { s.run(x) } -> std::same_as<iso::step_report>;
  { s.step(b, x) } -> std::same_as<iso::step_report>;
  { s.evaluate(b) } -> std::same_as<double>;
  { s.submit(b, x) } -> std::same_as<iso::pending_step>;
  { s.collect(s.submit(x)) } -> std::same_as<iso::step_report>;
  { s.run_plan(0) } -> std::same_as<iso::result<void>>;
  { s.run_plan_times(0, 1) } -> std::same_as<iso::result<void>>;
  { s.template input<float>("x") } -> std::same_as<iso::result<std::span<float>>>;
  { s.template output<float>("output") } -> std::same_as<iso::result<std::span<float>>>;
  { s.set("x", in) } -> std::same_as<iso::result<void>>;
  { s.read(iso::tensor_kind::parameter, 0, out) } -> std::same_as<iso::result<void>>;
  { s.write(iso::tensor_kind::parameter, 0, in) } -> std::same_as<iso::result<void>>;
  { s.status() } -> std::same_as<iso::result<void>>;
});

TEST(worker_api, a_device_without_a_worker_is_used_from_any_thread) {
  const auto d = device::open({.threads = 1});
  ASSERT_TRUE(d.ok()) << d.error().line();
  EXPECT_TRUE(d->shared()->owner().here());
}
