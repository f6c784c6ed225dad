// labels: alone
/// The behaviour of a loaded program on a device: submissions, bytes, overlap, chunks, faults. Its results are tested by isotope-parity and the tests of
/// plans.
#include "../allocation_counter.hpp"
#include "device.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>

#include <bit>

namespace isotope::vulkan {
namespace session_test {

template <class P> using on = target<backend::vulkan, P>;
using f32 = on<precision::f32>;
constexpr model::gpt tiny{2, 2, 16, 20, 8, 0.1};

device<f32> shared() {
  auto& d = vulkan_test::test_device();
  return device<f32>::over(d.context, d.pipelines);
}
dynamic_plan training_plan(bool accumulate = false) {
  auto p = plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}, {.accumulate = accumulate});
  EXPECT_TRUE(p.ok());
  return *std::move(p);
}
dynamic_plan evaluation_plan() {
  auto p = plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8});
  EXPECT_TRUE(p.ok());
  return *std::move(p);
}
session<f32> loaded(const device<f32>& d, bool accumulate = false) {
  auto s = d.load(training_plan(accumulate), evaluation_plan());
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  s->initialize(3);
  return *std::move(s);
}
struct data {
  std::vector<std::int32_t> tokens, targets;
  explicit data(std::uint64_t seed) {
    for (std::uint64_t i = 0; i < 16; ++i) {
      tokens.push_back(std::int32_t(philox(seed, i, 0, 0)[0] % 20));
      targets.push_back(std::int32_t(philox(seed, i, 1, 0)[0] % 20));
    }
  }
  operator batch() const { return {tokens, targets}; }
};
step_scalars at(std::int64_t step) {
  step_scalars x;
  x.seed = 5;
  x.counter = std::uint64_t(step);
  x.optimizer_step = step;
  x.learning_rate = 0.01f;
  x.clip_norm = 1;
  return x;
}
std::vector<float> all_parameters(const session<f32>& s) {
  std::vector<float> all;
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    std::vector<float> x(std::size_t(s.parameters()[k].dims.count()));
    EXPECT_TRUE(s.read(tensor_kind::parameter, k, x).ok());
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

TEST(vulkan_session, a_steady_step_allocates_nothing_and_is_one_submission_with_ids_in_and_two_numbers_out) {
  auto plain = isotope_test::there(device<f32>::open());  // without the validation layer, which allocates itself
  auto s = loaded(*plain);
  const data d(1), e(2);
  const std::array<batch, 2> turns{batch(d), batch(e)};
  for (int i = 0; i < 4; ++i) s.step(turns[std::size_t(i % 2)], at(i + 1)), s.evaluate(turns[0]);
  const auto before = s.counters();
  const auto device_allocations = s.queue().recorder().device->counters.allocations.load(),
             objects = s.queue().recorder().device->counters.objects.load();
  [[maybe_unused]] const auto host = allocations.load();
  for (int i = 4; i < 12; ++i) s.step(turns[std::size_t(i % 2)], at(i + 1));
#if COUNTS_ALLOCATIONS
  EXPECT_EQ(allocations.load() - host, 0);
#endif
  EXPECT_EQ(s.queue().recorder().device->counters.allocations.load(), device_allocations);
  EXPECT_EQ(s.queue().recorder().device->counters.objects.load(), objects);
  const auto after = s.counters();
  EXPECT_EQ(after.submits - before.submits, 8);
  EXPECT_EQ(after.bytes_in - before.bytes_in, 8 * std::int64_t(sizeof(device_scalars) + 2 * 16 * 4));
  EXPECT_EQ(after.bytes_out - before.bytes_out, 8 * 2 * 4);
}
TEST(vulkan_session, all_tensors_come_in_one_submission_and_reading_makes_nothing_new) {
  auto d = isotope_test::there(device<f32>::open());
  auto s = loaded(*d);
  const std::vector<float> one_by_one = all_parameters(s);
  std::vector<float> together(one_by_one.size());
  std::vector<tensor_read> all;
  for (std::size_t k = 0, from = 0; k < s.parameters().size(); from += all[k++].out.size())
    all.push_back({tensor_kind::parameter, k, std::span(together).subspan(from, std::size_t(s.parameters()[k].dims.count()))});
  ASSERT_GT(all.size(), 1U);
  const auto& c = s.queue().recorder().device->counters;
  const auto submits = c.submits.load(), allocations_before = c.allocations.load(), objects = c.objects.load();
  ASSERT_TRUE(s.read(all).ok());
  EXPECT_EQ(c.submits.load() - submits, 1);
  EXPECT_EQ(c.allocations.load(), allocations_before);
  EXPECT_EQ(c.objects.load(), objects);
  EXPECT_TRUE(same_bits(together, one_by_one));
}

TEST(vulkan_session, unchanged_inputs_are_not_written_again_unless_forced) {
  const data d(1);
  const batch b = d;
  auto s = loaded(shared());
  s.step(b, at(1));
  auto before = s.counters().bytes_in;
  s.step(b, at(2));
  EXPECT_EQ(s.counters().bytes_in - before, std::int64_t(sizeof(device_scalars)));

  auto o = vulkan_test::test_options();
  o.diagnose.force_upload = true;
  auto forced = isotope_test::there(device<f32>::open(o));
  auto t = loaded(*forced);
  t.step(b, at(1));
  before = t.counters().bytes_in;
  t.step(b, at(2));
  EXPECT_EQ(t.counters().bytes_in - before, std::int64_t(sizeof(device_scalars)) + 2 * 16 * 4);
}
TEST(vulkan_session, two_steps_in_flight_give_the_bits_of_one_after_the_other) {
  const std::vector<data> turns = {data(1), data(2), data(3), data(4), data(5)};
  auto one = loaded(shared()), two = loaded(shared());
  std::vector<double> losses, overlapped;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const batch b = turns[i];
    losses.push_back(one.step(b, at(std::int64_t(i) + 1)).loss);
  }
  std::optional<pending_step> flying;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto next = two.submit(batch(turns[i]), at(std::int64_t(i) + 1));
    if (flying) overlapped.push_back(two.collect(*flying).loss);
    flying = next;
  }
  overlapped.push_back(two.collect(*flying).loss);
  EXPECT_EQ(losses, overlapped);
  EXPECT_TRUE(same_bits(all_parameters(one), all_parameters(two)));
}
TEST(vulkan_session, micro_batches_in_two_frames_accumulate_like_one_after_the_other) {
  auto s = loaded(shared(), true), t = loaded(shared(), true);
  const data a(1), b(2), c(3);
  const std::array<batch, 3> parts{batch(a), batch(b), batch(c)};
  const double loss = s.step(parts, at(1)).loss;
  double by_hand = 0;  // the same phases, one after the other in one frame
  for (std::size_t i = 0; i < 3; ++i) {
    auto x = at(1);
    x.gradient_scale = 1.0f / 3;
    x.counter += i;
    ASSERT_TRUE(t.put(parts[i]).ok());
    by_hand = t.run(x, std::uint8_t((i == 0 ? phase_first : phase_later) | (i == 2 ? phase_last : 0))).loss;
  }
  EXPECT_EQ(loss, by_hand / 3);
  EXPECT_TRUE(same_bits(all_parameters(s), all_parameters(t)));
}
TEST(vulkan_session, every_step_of_the_plan_gives_the_same_bits_alone_as_in_one_submission) {
  auto s = loaded(shared()), t = loaded(shared());
  const data d(7);
  const batch b = d;
  const double loss = s.step(b, at(1)).loss;
  ASSERT_TRUE(t.put(b).ok());
  std::size_t steps = 0;
  EXPECT_EQ(t.observe(at(1), [&](std::size_t) { ++steps; }).loss, loss);
  EXPECT_EQ(steps, t.plan().steps.size());
  EXPECT_TRUE(same_bits(all_parameters(s), all_parameters(t)));
}
TEST(vulkan_session, a_dropped_barrier_is_found_by_the_checker) {
  auto s = loaded(shared());
  const auto all = s.dispatches();
  const auto before = plan_barriers(all);
  EXPECT_TRUE(find_hazards(all, before).empty());
  std::size_t barriers = 0;
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (before[k] == 0) continue;
    ++barriers;
    auto fewer = before;
    fewer[k] = 0;
    EXPECT_FALSE(find_hazards(all, fewer).empty()) << "before " << all[k].code->name;
  }
  EXPECT_GT(barriers, 20u);
}
/// Runs dispatches of a session one by one, twice each, the second time with garbage in all bytes of the arena that they do not declare.
class red_zones {
 public:
  explicit red_zones(session<f32>& s)
      : s_(s), commands_(*s.queue().recorder().command_buffers.buffer()), before_(std::size_t(s.arena().bytes())) {}

  /// How `x` accesses memory outside its declared ranges; empty: it does not.
  std::string complaint(const dispatch& x) {
    const auto reads = marked(x.reads), writes = marked(x.writes);
    EXPECT_TRUE(s_.queue().staging().download(s_.arena(), 0, before_).ok());
    auto garbage = before_, after = before_;
    for (std::size_t i = 0; i < garbage.size(); ++i)
      if (reads[i] == 0 && writes[i] == 0) garbage[i] = std::byte{0xff};
    run_on(garbage, x);
    run_on(after, x);
    const std::string who = std::string(x.code->name) + " of plan step " + std::to_string(x.step);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (writes[i] == 0 && before_[i] != after[i]) return who + " writes byte " + std::to_string(i) + ", which it does not declare";
      if (writes[i] != 0 && garbage[i] != after[i]) return who + " depends on bytes that it does not declare to read";
    }
    return {};
  }

 private:
  session<f32>& s_;
  VkCommandBuffer commands_;
  std::vector<std::byte> before_;

  std::vector<std::uint8_t> marked(const std::vector<range>& ranges) const {
    const std::uint64_t base = s_.arena().address();
    std::vector<std::uint8_t> where(before_.size(), 0);
    for (const auto& r : ranges)
      for (auto i = std::max(r.first, base); i < std::min(r.end, base + before_.size()); ++i) where[std::size_t(i - base)] = 1;
    return where;
  }
  void run_on(std::vector<std::byte>& arena, const dispatch& x) {
    auto& parts = s_.queue().recorder();
    ASSERT_TRUE(s_.queue().staging().upload(s_.arena(), 0, arena).ok());
    const std::uint8_t none[] = {0};
    ASSERT_TRUE(record_commands(*parts.device, *parts.made, commands_, {&x, 1}, none).ok());
    auto value = parts.device->submit(commands_);
    ASSERT_TRUE(value.ok());
    ASSERT_TRUE(parts.device->wait(*value).ok());
    ASSERT_TRUE(s_.queue().staging().download(s_.arena(), 0, arena).ok());
  }
};
/// The dispatches of a step, after inputs are set and pipelines created.
std::vector<dispatch> made_dispatches(session<f32>& s) {
  const data d(9);
  const batch b = d;
  EXPECT_TRUE(s.put(b).ok());
  s.set_scalars(at(1));
  auto all = s.dispatches();
  EXPECT_TRUE(s.queue().recorder().made->make(all).ok());
  return all;
}
TEST(vulkan_session, no_dispatch_writes_outside_its_declared_ranges_or_depends_on_what_it_does_not_read) {
  auto s = loaded(shared());
  const auto all = made_dispatches(s);
  red_zones zones(s);
  for (const auto& x : all) EXPECT_EQ(zones.complaint(x), "");
}
TEST(vulkan_session, a_write_past_the_end_and_an_undeclared_read_are_found) {
  auto s = loaded(shared());
  const auto all = made_dispatches(s);
  red_zones zones(s);
  int past = 0, undeclared = 0;
  for (const auto& x : all) {
    EXPECT_EQ(zones.complaint(x), "");
    if (x.code->name.find("norm") == std::string_view::npos || x.writes.empty() || x.reads.empty()) continue;
    auto shorter = x;
    shorter.writes[0].end -= 4;  // declares one float less than the kernel writes
    past += zones.complaint(shorter).find("writes byte") != std::string::npos;
    auto silent = x;
    silent.reads.erase(silent.reads.begin());
    undeclared += zones.complaint(silent).find("depends on bytes") != std::string::npos;
  }
  EXPECT_GE(past, 5);
  EXPECT_GE(undeclared, 5);
}
TEST(vulkan_session, a_device_lost_out_of_memory_or_hung_is_a_typed_error_and_another_device_goes_on) {
  struct {
    injected_fault fault;
    errc code;
  } const cases[] = {{injected_fault::device_lost, errc::device_lost},
                     {injected_fault::out_of_memory, errc::out_of_memory},
                     {injected_fault::hung, errc::timeout}};
  const data d(1);
  const batch b = d;
  for (const auto& c : cases) {
    auto o = vulkan_test::test_options();
    auto opened = isotope_test::there(device<f32>::open(o));
    auto s = loaded(*opened);
    EXPECT_FALSE(s.step(b, at(1)).skipped);
    const auto kept = all_parameters(s);
    opened->shared()->options.diagnose.fault = c.fault;
    opened->shared()->options.diagnose.fault_after = opened->shared()->counters.submits;
    const auto report = s.step(b, at(2));
    EXPECT_TRUE(report.skipped);
    EXPECT_TRUE(std::isnan(report.loss));
    ASSERT_FALSE(s.status().ok());
    EXPECT_EQ(s.status().error().code, c.code) << s.status().error().line();
    EXPECT_FALSE(s.status().error().fix.empty());
    auto other = loaded(shared());  // the process can continue with another device
    for (std::size_t k = 0, from = 0; k < other.parameters().size(); ++k) {
      const auto n = std::size_t(other.parameters()[k].dims.count());
      ASSERT_TRUE(other.write(tensor_kind::parameter, k, std::span(kept).subspan(from, n)).ok());
      from += n;
    }
    EXPECT_FALSE(other.step(b, at(2)).skipped);
  }
}
TEST(vulkan_session, a_device_that_is_still_at_work_when_it_is_given_up_keeps_what_it_uses) {
  const data d(1);
  const batch b = d;
  {
    auto opened = isotope_test::there(device<f32>::open(vulkan_test::test_options()));
    auto s = loaded(*opened);
    opened->shared()->options.timeout_seconds = 0;
    for (int t = 1; t < 10000 && s.status().ok(); ++t) s.step(b, at(t));
    ASSERT_FALSE(s.status().ok());
    EXPECT_EQ(s.status().error().code, errc::timeout) << s.status().error().line();
    EXPECT_TRUE(opened->shared()->f().abandoned);
  }
  auto other = loaded(shared());
  EXPECT_FALSE(other.step(b, at(1)).skipped);
}
result<device<f32>> in_small_allocations() {
  auto o = vulkan_test::test_options();
  o.diagnose.chunk_bytes = 64 << 10;
  return isotope_test::there(device<f32>::open(o));
}
TEST(vulkan_session, an_arena_in_many_small_allocations_is_refused_without_sparse_buffers) {
  auto chunked = in_small_allocations();
  if (chunked->shared()->physical().sparse) GTEST_SKIP() << "this device has sparse buffers";
  const auto refused = chunked->load(training_plan(), evaluation_plan());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, errc::out_of_memory);
  EXPECT_NE(refused.error().line().find("no sparse buffers"), std::string::npos);
}
TEST(vulkan_session, an_arena_in_many_small_allocations_gives_the_same_bits) {
  auto chunked = in_small_allocations();
  if (!chunked->shared()->physical().sparse) GTEST_SKIP() << "this device has no sparse buffers";
  const data d(4);
  const batch b = d;
  auto s = loaded(*chunked), whole = loaded(shared());
  EXPECT_GT(s.arena().pieces(), 1);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(s.step(b, at(i)).loss, whole.step(b, at(i)).loss);
  EXPECT_TRUE(same_bits(all_parameters(s), all_parameters(whole)));
}
struct wide {
  std::int64_t rows;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return relu(s.input("x", {rows, 1 << 20})); }
};
TEST(vulkan_session, a_tensor_beyond_what_shaders_can_index_is_refused_when_it_is_planned_with_its_size) {
  EXPECT_TRUE(plan_inference<f32>(wide{1024}).ok());
  const auto p = plan_inference<f32>(wide{1025});
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error().code, errc::over_budget);
  EXPECT_NE(p.error().line().find("4299161600"), std::string::npos) << p.error().line();
  EXPECT_TRUE((plan_inference<target<backend::cpu, precision::f32>>(wide{1025})).ok());
}
TEST(vulkan_session, launch_times_name_each_kernel_and_its_set) {
  auto s = loaded(shared());
  const data d(4);
  ASSERT_TRUE(s.put(batch(d)).ok());
  auto times = s.profile(at(1));
  ASSERT_TRUE(times.ok()) << times.error().line();
  EXPECT_EQ(times->launches.size(), s.dispatches().size());
  EXPECT_FALSE(times->report.skipped);
  for (const auto& t : times->launches) {
    EXPECT_FALSE(t.code.empty());
    EXPECT_FALSE(t.set.empty());
    EXPECT_GE(t.usec, 0);
  }
}
TEST(vulkan_session, static_and_run_time_plans_give_the_same_bits) {
  static constexpr model::gpt size = tiny;
  using fixed = training<model::gpt_loss<size, 2, 8>, f32>;
  auto s = shared().load<fixed>();
  ASSERT_TRUE(s.ok()) << s.error().line();
  s->initialize(3);
  auto t = loaded(shared());
  const data d(6);
  const batch b = d;
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(s->step(b, at(i)).loss, t.step(b, at(i)).loss);
  EXPECT_TRUE(same_bits(all_parameters(*s), all_parameters(t)));
}
TEST(vulkan_session, pipelines_come_back_from_the_file_of_an_earlier_device) {
  auto o = vulkan_test::test_options();
  o.cache = ::testing::TempDir() + "/isotope-pipelines-" + std::to_string(getpid());
  {
    auto cold = isotope_test::there(device<f32>::open(o));
    EXPECT_FALSE(cold->shared_pipelines()->warm());
    loaded(*cold);
  }
  auto warm = isotope_test::there(device<f32>::open(o));
  EXPECT_TRUE(warm->shared_pipelines()->warm());
  loaded(*warm);
  std::filesystem::remove(o.cache);
  std::filesystem::remove(o.cache + ".choices");
}

}  // namespace session_test
}  // namespace isotope::vulkan
