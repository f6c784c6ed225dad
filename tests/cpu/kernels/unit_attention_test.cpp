#include <isotope/kernels/cpu/native/attention_cached.hpp>
#include <isotope/kernels/cpu/native/attention_packed.hpp>

#include "compare.hpp"
#include "imitated_unit.hpp"

#include <array>
#include <limits>

/// Attention of packed sequences on a matrix unit. The code around the instructions runs with an emulated unit on every processor with AVX-512.
namespace unit_attention_test {
using namespace isotope_test;
using P = precision::bf16;
template <unit_fault Fault = unit_fault::none> using by_unit = cpu::native::packed_attention_of<P, imitated_unit<Fault>>;

class unit_attention : public testing::Test {
  void SetUp() override {
    if (!by_unit<>::tiles) GTEST_SKIP() << "needs a build for AVX-512";
  }
};

/// q, k and v are the parts of one tensor, as in an encoder. `starts` has the first row of each sequence and the end of the last one.
struct problem {
  std::int64_t heads, width, rows;
  array qkv, starts;

  problem(std::int64_t H, std::int64_t D, const std::vector<int>& begins)
      : heads(H),
        width(H * D),
        rows(begins.back() + 2),
        qkv(array::random({rows, 3 * width}, dtype::bf16, 1, -3, 3)),
        starts({std::int64_t(begins.size())}, dtype::i32) {
    for (std::size_t i = 0; i < begins.size(); ++i) starts.set(std::int64_t(i), begins[i]);
  }
  op_case step() const {
    std::vector<cpu::view> in;
    for (int i = 0; i < 3; ++i) {
      cpu::view part = qkv.v;
      part.dims = {rows, width};
      part.data = part.as<bfloat16>() + i * width;
      in.push_back(part);
    }
    in.push_back(starts.v);
    std::vector<array> out;
    out.emplace_back(shape{rows, width}, dtype::bf16, 7);
    return {in, std::move(out), op::attention_packed::constants{.heads = heads, .scale = 1 / std::sqrt(double(width / heads))}};
  }
};
/// The largest difference from the reference kernel, which keeps weights in f32.
template <unit_fault Fault = unit_fault::none> double difference(const problem& x) {
  const auto wanted = x.step().run<cpu::kernel<op::attention_packed, P, kernels::reference>>(nullptr);
  const auto given = x.step().run<by_unit<Fault>>(&pool_of(1));
  double most = 0;
  for (std::int64_t i = 0; i < given[0].count(); ++i) {
    const double d = std::fabs(given[0].at(i) - wanted[0].at(i));
    if (!(d <= most)) most = d;
  }
  return most;
}

/// Values are below 3. A weight and a result are rounded to 8 bits: 2^-9 each, and once more in the reference.
constexpr double bound = 3 * 3 * 0x1p-9;

TEST_F(unit_attention, matches_the_reference) {
  for (const std::int64_t D : {32, 64})
    for (const auto& begins : {std::vector<int>{0, 1, 17, 17, 33, 97}, {0, 64, 128}, {3, 131, 260}, {0, 15, 31, 48, 111, 176}})
      EXPECT_TRUE(difference({2, D, begins}) <= bound) << D << ' ' << begins.back();
}
TEST_F(unit_attention, has_the_same_bits_on_several_threads_and_alone) {
  const problem all(3, 32, {0, 70, 205, 300});
  const auto wanted = all.step().run<by_unit<>>(&pool_of(1));
  for (const int threads : {2, 3}) EXPECT_EQ(wanted[0].bytes, all.step().run<by_unit<>>(&pool_of(threads))[0].bytes);
  problem alone(3, 32, {70, 205});
  std::memcpy(alone.qkv.v.data, all.qkv.v.data, std::size_t(207 * 3 * 96 * 2));
  const auto given = alone.step().run<by_unit<>>(&pool_of(1));
  EXPECT_EQ(0, std::memcmp(given[0].v.as<bfloat16>() + 70 * 96, wanted[0].v.as<bfloat16>() + 70 * 96, 135 * 96 * 2));
}
TEST_F(unit_attention, of_one_sequence_is_not_changed_by_nan_in_the_next) {
  problem x(1, 32, {0, 17, 40});
  const auto wanted = x.step().run<by_unit<>>(&pool_of(1));
  for (std::int64_t i = 17 * 96; i < 18 * 96; ++i) x.qkv.set(i, std::numeric_limits<double>::quiet_NaN());
  const auto given = x.step().run<by_unit<>>(&pool_of(1));
  EXPECT_EQ(0, std::memcmp(given[0].v.data, wanted[0].v.data, 17 * 32 * 2));
  EXPECT_TRUE(std::isnan(given[0].at(17 * 32)));
}
TEST_F(unit_attention, of_a_wrong_unit_is_found) { EXPECT_FALSE(difference<unit_fault::adds_a_tile_once_more>({2, 32, {0, 64}}) <= bound); }
/// A prompt of `tokens` behind `cached` tokens, of three heads that share keys and values.
struct prompt {
  std::int64_t cached, tokens, D, window;
  array q, keys, values, sequence, position;

  prompt(std::int64_t already, std::int64_t n, std::int64_t width, std::int64_t w)
      : cached(already),
        tokens(n),
        D(width),
        window(w),
        q(array::random({n, 3 * D}, dtype::bf16, 1, -3, 3)),
        keys(array::random({2, 1, cached + n + 5, D}, dtype::bf16, 2, -3, 3)),
        values(array::random({2, 1, cached + n + 5, D}, dtype::bf16, 3, -3, 3)),
        sequence({n}, dtype::i32),
        position({n}, dtype::i32) {
    for (std::int64_t i = 0; i < n; ++i) sequence.set(i, 1), position.set(i, double(cached + i));
  }
  op_case step() const {
    std::vector<array> out;
    out.emplace_back(shape{tokens, 3 * D}, dtype::bf16, 7);
    return {{q.v, keys.v, values.v, sequence.v, position.v},
            std::move(out),
            op::attention_cached::constants{.heads = 3, .window = window, .scale = 1 / std::sqrt(double(D))}};
  }
};
template <unit_fault Fault = unit_fault::none> double difference(const prompt& x) {
  const auto wanted = x.step().run<cpu::kernel<op::attention_cached, P, kernels::reference>>(nullptr);
  const auto given = x.step().run<cpu::native::cached_attention_of<P, imitated_unit<Fault>>>(&pool_of(2));
  double most = 0;
  for (std::int64_t i = 0; i < given[0].count(); ++i) {
    const double d = std::fabs(given[0].at(i) - wanted[0].at(i));
    if (!(d <= most)) most = d;
  }
  return most;
}
TEST_F(unit_attention, of_prompts_matches_the_reference) {
  for (const auto& [cached, tokens, D, window] :
       {std::array<std::int64_t, 4>{0, 64, 32, 0}, {0, 150, 64, 0}, {37, 17, 32, 0}, {100, 91, 32, 0}, {30, 140, 32, 40}, {3, 16, 96, 5}})
    EXPECT_TRUE(difference(prompt(cached, tokens, D, window)) <= bound) << cached << ' ' << tokens << ' ' << window;
  EXPECT_FALSE(difference<unit_fault::adds_a_tile_once_more>(prompt(0, 64, 32, 0)) <= bound);
}
/// The instructions give the same bits as their emulation after the manual.
TEST_F(unit_attention, gives_the_bits_of_its_emulation) {
  using by_instructions = cpu::native::packed_attention_of<P>;
  if constexpr (!by_instructions::tiles) {
    GTEST_SKIP() << "not compiled for a processor with AMX";
  } else if (!cpu::native::matrix_unit::permitted()) {
    GTEST_SKIP() << cpu::tiles_refused();
  } else {
    const problem x(2, 64, {0, 5, 64, 200});
    EXPECT_EQ(x.step().run<by_unit<>>(&pool_of(1))[0].bytes, x.step().run<by_instructions>(&pool_of(1))[0].bytes);
  }
}
}  // namespace unit_attention_test
