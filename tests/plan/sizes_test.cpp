/// Impossible sizes are refused by one line that names the tensor or the op and its sizes, and no product or sum of sizes overflows 64 bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

namespace sizes_test {

using namespace isotope;
using reference = isotope::target<backend::cpu, precision::f32, kernels::reference>;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

template <class Model> std::string refusal(const Model& model) {
  const auto p = plan_training<reference>(model);
  return p.ok() ? "planned " + std::to_string(p->totals.bytes) + " bytes" : p.error().line();
}
/// Plans the mean of f(w), where w is a parameter of shape `dims`, and returns the error.
template <class F> std::string refusal_of(const shape& dims, const F& f) {
  return refusal([&](auto s) { return mean(f(s.param("w", dims, init::ones))); });
}
void expect_words(const std::string& line, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(line.find(word), line.npos) << "'" << word << "' is missing in: " << line;
}

TEST(sizes, a_parameter_of_too_many_elements_is_named_with_its_shape) {
  const std::int64_t wraps_to_0 = std::int64_t(1) << 32, wraps_to_1 = 274177, and_1 = 67280421310721, bytes_wrap = 3000000000;
  const std::int64_t sizes[][2] = {{wraps_to_0, wraps_to_0}, {wraps_to_1, and_1}, {bytes_wrap, bytes_wrap}, {most, most}, {most, 1}};
  for (const auto& [a, b] : sizes)
    expect_words(refusal_of({a, b}, [](auto w) { return w; }),
                 {"'w' has more than 2^40 elements", std::to_string(a).c_str(), std::to_string(b).c_str(), "sizes_test.cpp"});
}

TEST(sizes, an_empty_tensor_has_axes_in_range_too) {
  expect_words(refusal_of({0, most, most}, [](auto w) { return w; }), {"'w' has more than 2^40 elements"});
}

TEST(sizes, a_reshape_does_not_accept_a_count_that_wraps) {
  const auto to = [](const shape& y) { return refusal_of({1}, [&](auto w) { return reshape(w, y); }); };
  expect_words(to({274177, 67280421310721}), {"reshape: the result [274177,67280421310721] has more than 2^40 elements"});
  expect_words(refusal_of({4}, [](auto w) { return reshape(w, {-2, -2}); }), {"reshape: the result [-2,-2] has a negative dimension"});
  expect_words(refusal_of({4}, [](auto w) { return reshape(w, {1, 1, 1, 1, 1, 4, 1}); }), {"reshape", "has more than 6 dimensions"});
  expect_words(refusal_of({1}, [](auto w) { return expand(w, {1, 1, 1, 1, 1, 1, 4}); }), {"expand", "has more than 6 dimensions"});
  expect_words(refusal_of({0}, [](auto w) { return reshape(w, {0, std::int64_t(1) << 31, std::int64_t(1) << 31}); }),
               {"more than 2^40 elements"});
}

TEST(sizes, a_range_of_an_axis_does_not_wrap) {
  expect_words(refusal_of({4}, [](auto w) { return narrow(w, 0, most, 1); }),
               {"narrow: a range of 1 from 9223372036854775807 of axis 0 is outside [4]"});
  expect_words(refusal_of({4}, [](auto w) { return narrow(w, 0, 1, most); }), {"narrow: a range of 9223372036854775807 from 1"});
  expect_words(refusal_of({4}, [](auto w) { return pad(w, 0, most, most); }), {"pad: range is outside the padded axis"});
  expect_words(refusal_of({4}, [](auto w) { return pad(w, 0, 0, std::int64_t(1) << 62); }), {"pad: the result", "more than 2^40 elements"});
}

TEST(sizes, results_that_grow_beyond_the_limit_are_refused_where_they_are_made) {
  const std::int64_t large = std::int64_t(1) << 32;
  expect_words(refusal_of({1}, [=](auto w) { return expand(w, {large, large}); }), {"expand: the result", "more than 2^40 elements"});
  expect_words(refusal_of({1 << 21, 1}, [](auto w) { return matmul(w, transpose(w)); }), {"matmul: the result [2097152,2097152]"});
  expect_words(refusal_of({1 << 21, 1}, [](auto w) { return w + transpose(w); }), {"more than 2^40 elements"});
  expect_words(
      refusal([=](auto s) { return mean(s.param("w", {2}, init::ones)) + mean(fill(*s.machine, shape{large, large}, dtype::f32)); }),
      {"fill: the result"});
}

TEST(sizes, heads_beyond_the_width_are_refused) {
  expect_words(refusal_of({1, 2, 8}, [](auto w) { return attention(w, 2147483647); }), {"attention", "multiple of"});
}

TEST(sizes, an_axis_that_is_not_there_has_size_1) {
  constexpr shape scalar{}, row{3};
  static_assert(scalar[-1] == 1 && scalar[0] == 1 && scalar[7] == 1 && row[0] == 3 && row[-1] == 3 && row[-2] == 1 && row[7] == 1);
  static_assert(scalar.count() == 1 && shape{0, 5}.count() == 0 && shape{2, 3}.fault().empty());
  static_assert(shape{most, 2}.count() == most && !shape{most, 2}.fault().empty() && !shape{-1}.fault().empty());
}

}  // namespace sizes_test
