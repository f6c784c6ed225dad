// labels: alone
/// Sizes of workgroups that an application asks for: they reach the kernels, and they change no bit of any result. This program's kernels are compiled
/// with observe_launch.glsl, which counts the sizes that they see.
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace isotope::vulkan {
namespace launch_size_test {

template <class Set> using with = target<backend::vulkan, precision::f32, Set>;
/// Ops of many kinds without those whose pipelines take a software driver long.
struct small_model {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto x = embedding(s.param("table", {20, 16}, init::normal(0.5)), s.input("tokens", {16}, dtype::i32));
    const auto y = dropout(gelu(nn::layer_norm(s / "norm", x)), 0.1);
    return cross_entropy(softmax(nn::linear(s / "out", y, 20, 0.2)), s.input("targets", {16}, dtype::i32));
  }
};
constexpr std::uint32_t counts_low = 1001, counts_high = 1002, counted_sizes = 2048;  // as in observe_launch.glsl

/// Whether a module has the specialization constant that says where it counts: those made at run time have not.
bool observes(const shader& code) {
  constexpr std::uint32_t decorate = 71, spec_id = 1, header = 5;
  for (std::size_t i = header; i < code.words.size(); i += std::max(1u, code.words[i] >> 16))
    if ((code.words[i] & 0xffff) == decorate && code.words[i + 2] == spec_id && code.words[i + 3] == counts_low) return true;
  return false;
}

struct step_taken {
  std::map<std::uint32_t, std::uint32_t> asked, seen, invocations;  // dispatches by size of their workgroups
  std::set<std::string_view> open;                                  // shaders whose size is open
  std::vector<std::byte> parameters;
  std::uint32_t largest = 0;
  bool ends_fit = true;  // every dispatch covers its items
};

/// One training step of a model with workgroups of `size`, -1: of the kernels' own.
template <class Set> step_taken take_step(std::int32_t size) {
  step_taken t;
  auto o = vulkan_test::test_options();
  o.diagnose.launch_size = size;
  auto d = isotope_test::there(device<with<Set>>::open(o));
  t.largest = d->limits().invocations;
  auto counts = d->template allocate<std::uint32_t>(2 * counted_sizes);
  const std::uint64_t at = counts->address();
  d->shared()->options.diagnose.constants = {{counts_low, std::uint32_t(at)}, {counts_high, std::uint32_t(at >> 32)}};
  auto s = d->load(*plan_training<with<Set>>(small_model{}));
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  s->initialize(3);
  std::vector<std::int32_t> tokens, targets;
  for (int i = 0; i < 16; ++i) tokens.push_back(i * 5 % 20), targets.push_back(i * 3 % 20);
  EXPECT_TRUE(s->put(batch{tokens, targets}).ok());
  step_scalars x;
  x.seed = 5;
  x.optimizer_step = 1;
  x.learning_rate = 0.01f;
  x.clip_norm = 1;
  std::fill(counts->span().begin(), counts->span().end(), 0u);
  s->run(x);
  for (const dispatch& step : s->dispatches()) {
    t.ends_fit = t.ends_fit && (step.count.unit == 0 || std::int64_t(step.count.x) * step.count.y * step.invocations() >= step.count.items);
    if (step.count.unit != 0) t.open.insert(step.code->name);
    if (observes(*step.code)) ++t.asked[step.invocations()];
  }
  for (std::uint32_t n = 0; n < counted_sizes; ++n) {
    if (counts->span()[n] != 0) t.seen[n] = counts->span()[n];
    if (counts->span()[counted_sizes + n] != 0) t.invocations[n] = counts->span()[counted_sizes + n];
  }
  for (std::size_t k = 0; k < s->parameters().size(); ++k) {
    std::vector<float> values(std::size_t(s->parameters()[k].dims.count()));
    EXPECT_TRUE(s->read(tensor_kind::parameter, k, values).ok());
    const auto bytes = std::as_bytes(std::span(values));
    t.parameters.insert(t.parameters.end(), bytes.begin(), bytes.end());
  }
  for (const auto& text : d->shared()->messages().texts()) EXPECT_TRUE(vulkan_test::allowed(text)) << text;
  return t;
}

/// Every size of a sweep: what the kernels saw is what was asked, and the parameters after the step have the same bits.
template <class Set> void every_size(std::size_t open_shaders) {
  const step_taken own = take_step<Set>(-1);
  EXPECT_GE(own.open.size(), open_shaders);
  ASSERT_FALSE(own.parameters.empty());
  for (const std::int32_t size : {-1, 1, 64, std::int32_t(own.largest)}) {
    const step_taken t = size < 0 ? own : take_step<Set>(size);
    EXPECT_TRUE(t.ends_fit) << size;
    EXPECT_EQ(t.seen, t.asked) << size;
    if (size > 0) { EXPECT_GT(t.asked.count(std::uint32_t(size)), 0u) << size; }
    for (const auto& [n, dispatches] : t.asked) EXPECT_EQ(t.invocations.at(n), n * dispatches) << size;
    EXPECT_EQ(t.parameters, own.parameters) << size;
  }
}

TEST(vulkan_launch_size, every_size_reaches_the_kernels_of_the_reference_set_and_changes_no_bit) { every_size<kernels::reference>(15); }
TEST(vulkan_launch_size, every_size_reaches_the_portable_kernels_and_changes_no_bit) { every_size<kernels::portable>(8); }

TEST(vulkan_launch_size, a_size_that_the_device_does_not_take_is_refused_with_its_limit) {
  const std::string limit = std::to_string(vulkan_test::test_device().context->physical().limits.invocations);
  for (const std::int32_t size : {0, -2, std::stoi(limit) + 1}) {
    auto o = vulkan_test::test_options();
    o.diagnose.launch_size = size;
    const auto d = device<with<kernels::portable>>::open(o);
    ASSERT_FALSE(d.ok()) << size;
    EXPECT_EQ(d.error().code, errc::invalid_argument);
    EXPECT_NE(d.error().line().find("workgroups of " + std::to_string(size) + " invocations"), std::string::npos) << d.error().line();
    EXPECT_NE(d.error().line().find("takes 1 to " + limit), std::string::npos) << d.error().line();
  }
}
TEST(vulkan_launch_size, teams_keep_to_whole_subgroups_and_algorithms_to_their_size) {
  const groups teams{4, 1, 1, 4 * 64, 8, 256}, fixed = cover(10, 1), items = per_invocation(1000, 256);
  for (const auto& [wanted, size] : {std::pair(1u, 8u), std::pair(64u, 64u), std::pair(100u, 96u), std::pair(1024u, 256u)})
    EXPECT_EQ(teams.fit(wanted), size);
  EXPECT_EQ(fixed.unit, 0u);
  EXPECT_EQ(resized(items, 1).x, 1000u);
  EXPECT_EQ(resized(items, 1024).x, 1u);
  EXPECT_EQ(resized(per_invocation(100000, 256), 1).y, 2u);
}

}  // namespace launch_size_test
}  // namespace isotope::vulkan
