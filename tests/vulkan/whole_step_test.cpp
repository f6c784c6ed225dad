/// A step of decoding of one row as one dispatch. A single workgroup waits for no other one, so it runs on every device.
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>

#include <algorithm>
#include <bit>
#include <vector>

namespace isotope {
namespace whole_step_test {

constexpr model::gpt size{.layers = 2, .heads = 2, .width = 128, .vocab = 65, .context = 300};
using here = target<backend::vulkan, precision::bf16, kernels::portable>;

device<here> open_with(int workgroups) {
  vulkan::options o;
  o.timeout_seconds = vulkan_test::test_options().timeout_seconds;
  o.diagnose.constants = vulkan_test::constants_of_all();
  o.diagnose.step_workgroups = workgroups;
  o.diagnose.no_self_test = true;
  return *isotope_test::there(device<here>::open(o));
}
vulkan::session<here> load(const device<here>& on, const model::gpt& g, int slots, int rows, bool invariant = false) {
  std::vector<owned_plan> plans;
  plans.push_back(
      {"decode", *plan_inference<here>(model::gpt_cached_logits_of{g, slots, rows, 0}, 0, true, false, nullptr, nullptr, invariant)});
  auto s = on.load(std::move(plans));
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  return *std::move(s);
}
std::ptrdiff_t count(const vulkan::session<here>& s, std::string_view name) {
  return std::ranges::count_if(s.launches(), [&](const launch_row& l) { return l.code == name; });
}

TEST(whole_step, takes_the_place_of_the_dispatches_of_all_layers) {
  const auto on = open_with(1);
  if (on.limits().invocations < 512) GTEST_SKIP() << "half of 512 invocations read keys, half values";
  const auto s = load(on, size, 3, 1);
  EXPECT_EQ(count(s, "decode_step"), 1);
  EXPECT_EQ(s.launches().size(), 5u) << "two embeddings, their sum, the step and the copy of the logits";
  const auto all = s.dispatches();
  EXPECT_TRUE(find_hazards(all, plan_barriers(all)).empty());
  const auto& d = *std::ranges::find_if(all, [](const auto& x) { return x.code->name == "decode_step"; });
  EXPECT_EQ(d.count.x, 1u);
  EXPECT_EQ(d.writes.size(), 2u + 2u * size.layers) << "what workgroups pass on, the logits, and the caches";
}
TEST(whole_step, is_left_out_for_several_rows_and_other_orders_of_sums_and_heads) {
  const auto on = open_with(1);
  constexpr model::gpt small{.layers = 1, .heads = 2, .width = 128, .vocab = 65, .context = 40};
  EXPECT_EQ(count(load(on, small, 3, 3), "decode_step"), 0);
  EXPECT_EQ(count(load(on, small, 1, 1, true), "decode_step"), 0) << "rows of any batch have the same bits";
  EXPECT_EQ(count(load(on, {.layers = 1, .heads = 2, .width = 24, .vocab = 65, .context = 40}, 1, 1), "decode_step"), 0) << "heads of 12";
}

/// Logits of tokens at several positions of two slots.
std::vector<std::uint16_t> logits_of(const device<here>& on) {
  auto s = load(on, size, 2, 1);
  s.initialize(3);
  std::vector<std::uint16_t> all;
  std::vector<std::int32_t> token(1), sequence(1), position(1);
  const auto run = [&](int slot, int at) {
    token[0] = (7 * at + 13 * slot) % size.vocab, sequence[0] = slot, position[0] = at;
    EXPECT_TRUE(s.set<std::int32_t>("tokens", token) && s.set<std::int32_t>("sequence", sequence) &&
                s.set<std::int32_t>("position", position) && s.run_plan(0));
    const auto logits = s.output<precision::bf16::storage>("output", 0);
    for (const auto x : *logits) all.push_back(std::bit_cast<std::uint16_t>(x));
  };
  for (int at = 0; at < 4; ++at) run(1, at);
  run(-1, 5);  // an idle row
  for (const int at : {0, 1, 31, 32, 255, 256, 299}) run(0, at);
  return all;
}
TEST(whole_step, gives_the_bits_of_separate_dispatches) {
#if defined(ISOTOPE_TESTS_OF_A_NIGHT)
  EXPECT_EQ(logits_of(open_with(1)), logits_of(open_with(0)));
#else
  if (vulkan_test::test_device().context->physical().kind == device_kind::cpu)
    GTEST_SKIP() << "a driver that runs on a processor takes seconds to compile the shader; tests of a night wait for it";
  EXPECT_EQ(logits_of(open_with(-1)), logits_of(open_with(0)));
#endif
}

}  // namespace whole_step_test
}  // namespace isotope
