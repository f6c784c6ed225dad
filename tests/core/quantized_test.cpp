#include <isotope/core/quantized.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace iso = isotope;
namespace q = isotope::quantized;

namespace quantized_test {

/// 32 multiples of 1/16 from -31/16 to 2, each once.
std::vector<float> ramp() {
  std::vector<float> x;
  for (int i = 0; i < 32; ++i) x.push_back(float(i * 37 % 64 - 31) / 16);
  return x;
}
std::vector<int> in_file(iso::dtype t, const q::values& v) {
  std::vector<std::byte> b(std::size_t(q::block_bytes(t)));
  q::put_in_file(t, v, b.data());
  EXPECT_EQ(q::get_from_file(t, b.data()), v);
  std::vector<int> r;
  for (const std::byte x : b) r.push_back(int(x));
  return r;
}

// The bytes were computed by a program of its own from the definition: 34 and 18 bytes, the scale first.
TEST(quantized, blocks_of_a_file_have_the_bytes_of_the_definition) {
  EXPECT_EQ(in_file(iso::dtype::q8_0, q::quantize(iso::dtype::q8_0, ramp().data())),
            (std::vector<int>{8,  36,  133, 24,  173, 64, 212, 103, 252, 145, 36,  185, 75, 224, 115, 8,   157,
                              48, 196, 87,  236, 127, 20, 169, 60,  208, 99,  248, 141, 32, 181, 71,  220, 111}));
  EXPECT_EQ(in_file(iso::dtype::q4_0, q::quantize(iso::dtype::q4_0, ramp().data())),
            (std::vector<int>{0, 180, 207, 55, 157, 4, 123, 226, 72, 191, 38, 157, 243, 106, 209, 72, 174, 21}));
}

TEST(quantized, halves_round_away_from_zero_and_the_first_of_two_largest_gives_the_sign) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127, x[1] = 0.5f, x[2] = -0.5f, x[3] = 2.5f, x[4] = 0.49999997f, x[5] = -127;
  const auto v = q::quantize(iso::dtype::q8_0, x.data());
  EXPECT_EQ(float(v.scale), 1.0f);
  EXPECT_EQ(v.code[0], 127);
  EXPECT_EQ(v.code[1], 1);
  EXPECT_EQ(v.code[2], -1);
  EXPECT_EQ(v.code[3], 3);
  EXPECT_EQ(v.code[4], 0);
  EXPECT_EQ(v.code[5], -127);
  const auto w = q::quantize(iso::dtype::q4_0, x.data());
  EXPECT_LT(float(w.scale), 0);
  EXPECT_EQ(w.code[0], -8);
  EXPECT_EQ(w.code[5], 7);  // 8 is beyond the range
}

TEST(quantized, zeros_and_numbers_below_the_range_of_scales_become_zeros) {
  for (const auto t : {iso::dtype::q8_0, iso::dtype::q4_0})
    for (const float x : {0.0f, 1e-45f, -1e-40f, 1e-9f}) {
      const std::vector<float> all(32, x);
      const auto v = q::quantize(t, all.data());
      for (int j = 0; j < 32; ++j) EXPECT_EQ(std::fabs(v[j]), 0.0f) << x;
    }
}

// A loader that reads a file as f32 and quantises again keeps its bytes.
TEST(quantized, quantising_what_was_quantised_gives_the_same_block) {
  std::uint32_t state = 1;
  for (const auto t : {iso::dtype::q8_0, iso::dtype::q4_0})
    for (int round = 0; round < 200; ++round) {
      float x[32], y[32];
      for (float& e : x) {
        state = state * 1664525u + 1013904223u;
        e = std::ldexp(float(std::int32_t(state)), -31 - round % 10);
      }
      const auto once = q::quantize(t, x);
      for (int j = 0; j < 32; ++j) y[j] = once[j];
      EXPECT_EQ(q::quantize(t, y), once);
    }
}

TEST(quantized, memory_holds_every_element_of_panels_that_are_not_full) {
  const std::int64_t N = 19, K = 96;
  std::vector<float> x;
  for (std::int64_t i = 0; i < N * K; ++i) x.push_back(float(i * 7919 % 1021) / 500 - 1);
  for (const auto t : {iso::dtype::q8_0, iso::dtype::q4_0}) {
    EXPECT_EQ(q::bytes_of(t, N, K), 2 * 3 * 16 * q::block_bytes(t));
    EXPECT_EQ(q::bytes_of(t, {K, N}, {1, K}), q::bytes_of(t, {N, K}, {K, 1}));
    std::vector<std::byte> memory(std::size_t(q::bytes_of(t, N, K)), std::byte(0x5a));
    q::store(t, x.data(), 0, N * K, K, memory.data());
    for (std::int64_t n = 0; n < N; ++n) {
      std::vector<float> row(std::size_t(K) - 5);
      q::read_row(t, memory.data(), K, n, 5, K - 5, row.data());
      for (std::int64_t k = 5; k < K; ++k) {
        const auto block = q::quantize(t, x.data() + n * K + k / 32 * 32);
        EXPECT_EQ(row[std::size_t(k - 5)], block[k % 32]) << n << ' ' << k;
        EXPECT_EQ(q::element(t, memory.data(), K, n, k), block[k % 32]);
      }
    }
  }
}

}  // namespace quantized_test
