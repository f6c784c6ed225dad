// Attention whose scores are written out, and the forms of rope: what ONNX's reference implementation computed (tests/fixtures/onnx_cases.py).
#include <isotope/backend/cpu.hpp>
#include <isotope/eager/eager.hpp>
#include <isotope/nn/nn.hpp>
#include <isotope/nn/scored_attention.hpp>
#include <isotope/op/all.hpp>

#include "recorded_fixture.hpp"

#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace iso = isotope;

namespace onnx_cases_test {

using machine = iso::eager<iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::portable>>;
using iso::tensor;
constexpr auto none = std::numeric_limits<double>::infinity();

const isotope_test::recorded& file() {
  static const isotope_test::recorded all("onnx");
  return all;
}
/// A stored tensor as an input of the machine; not valid if there is none.
tensor<machine> given(machine& m, const std::string& name) {
  const auto* stored = file().file.find(name);
  if (stored == nullptr) return {};
  const auto numbers = file().floats(name);
  m.set(name, std::span<const float>(numbers));
  iso::shape dims;
  for (const std::int64_t n : stored->dims) dims.push(n);
  return iso::scope<machine>{&m, {}}.input(name, dims);
}
/// The largest difference of the numbers of y from the stored ones.
double apart(machine& m, tensor<machine> y, const std::string& name) {
  EXPECT_TRUE(m.ok()) << std::string(m.g.error.view());
  if (!m.ok()) return none;
  const auto numbers = m.read(y);
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  return isotope_test::apart(narrow, file().floats(name));
}

struct attention_case {
  const char* name;
  iso::nn::scored_attention_options options{};
  bool boolean = false;
};
void PrintTo(const attention_case& c, std::ostream* to) { *to << c.name; }
/// ONNX counts positions from the first key unless there is a cache.
const attention_case cases[] = {
    {"plain"},
    {"causal", {.causal = true, .before = 0}},
    {"scaled", {.scale = 0.01}},
    {"soft_cap", {.soft_cap = 2}},
    {"soft_cap_small", {.scale = 1, .soft_cap = 0.25}},
    {"mask"},
    {"mask_3d"},
    {"mask_3d_causal", {.causal = true, .before = 0}},
    {"mask_4d"},
    {"mask_4d_causal", {.causal = true, .before = 0}},
    {"mask_boolean", {}, true},
    {"mask_boolean_4d", {}, true},
    {"mask_empty_row", {}, true},
    {"soft_cap_masked", {.soft_cap = 2}},
    {"grouped"},
    {"grouped_causal", {.causal = true, .before = 0}},
    {"grouped_scaled", {.scale = 0.01}},
    {"grouped_soft_cap", {.soft_cap = 3}},
    {"grouped_mask"},
    {"wide"},
    {"wide_causal", {.causal = true, .before = 0}},
    {"wide_soft_cap", {.soft_cap = 2}},
    {"wide_mask"},
    {"past"},
    {"past_causal", {.causal = true, .before = 5}},
    {"past_wide_mask"},
    {"past_grouped", {.causal = true, .before = 5}},
    {"window", {.causal = true, .before = 0, .left = 1}},
    {"window_both", {.before = 0, .left = 1, .right = 2}},
    {"window_past", {.causal = true, .before = 5, .left = 3}},
};

class scored_attention : public testing::TestWithParam<attention_case> {};
TEST_P(scored_attention, computes_what_onnx_does) {
  const auto& c = GetParam();
  const std::string name = c.name;
  machine m;
  auto q = given(m, name + ".q"), k = given(m, name + ".k"), v = given(m, name + ".v"), mask = given(m, name + ".mask");
  if (const auto past = given(m, name + ".past_key"); past.valid())
    k = iso::concat({past, k}, 2), v = iso::concat({given(m, name + ".past_value"), v}, 2);
  if (c.boolean) mask = less(fill(m, {}, iso::dtype::f32, 0.5), mask);
  EXPECT_LE(apart(m, iso::nn::scored_attention(q, k, v, mask, c.options), name + ".y"), 1e-6);
}
INSTANTIATE_TEST_SUITE_P(of, scored_attention, testing::ValuesIn(cases), [](const auto& c) { return std::string(c.param.name); });

struct rope_case {
  const char* name;
  iso::rope_options options{};
};
void PrintTo(const rope_case& c, std::ostream* to) { *to << c.name; }
const rope_case rotations[] = {
    {"halves"}, {"interleaved", {.interleaved = true}}, {"part", {.width = 4}}, {"part_interleaved", {.width = 4, .interleaved = true}}};
class forms_of_rope : public testing::TestWithParam<rope_case> {};
TEST_P(forms_of_rope, rotate_as_onnx_does) {
  const std::string name = GetParam().name;
  machine m;
  const auto x = given(m, name + ".x");
  const auto ids = file().ids(name + ".positions");
  m.set("positions", std::span<const std::int32_t>(ids));
  const auto positions = iso::scope<machine>{&m, {}}.input("positions", {2, 4}, iso::dtype::i32);
  EXPECT_LE(apart(m, rope(x, positions, GetParam().options), name + ".y"), 1e-6);
}
INSTANTIATE_TEST_SUITE_P(of, forms_of_rope, testing::ValuesIn(rotations), [](const auto& c) { return std::string(c.param.name); });

}  // namespace onnx_cases_test
