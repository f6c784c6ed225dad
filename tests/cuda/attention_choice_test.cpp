/// Which variants of attention are chosen: those that were measured to be the fastest; in batch-invariant plans whatever the number of sequences. Nothing runs on a device.
#include <isotope/kernels/cuda/native/attention.hpp>
#include <isotope/kernels/cuda/native/attention_cached.hpp>
#include <isotope/kernels/cuda/native/attention_grad.hpp>

#include <gtest/gtest.h>

#include <string>

using namespace isotope;

namespace attention_choice_test {

using cuda::attention_kind;

cuda::device_limits hopper() {
  cuda::device_limits d;
  d.compute = 90, d.multiprocessors = 132, d.shared_bytes = 227 << 10;
  return d;
}
/// Of f32 operands, or of bf16 operands, on the device of the test.
cuda::attention_work work(std::int64_t S, std::int64_t T, std::int64_t D, dtype t, const cuda::device_limits& d, double sequences = 1) {
  cuda::attention_work w{.flops = sequences * 4 * double(S * T * D), .S = S, .T = T, .D = D, .device = &d};
  if (t != dtype::f32) w.refusal(attention_kind::f32_tiles) = "it multiplies only f32";
  else w.refusal(attention_kind::warpgroups) = w.refusal(attention_kind::tensor_cores) = "the kernel multiplies only bf16";
  if (w.refusal(attention_kind::warpgroups).empty() && !d.hopper()) w.refusal(attention_kind::warpgroups) = "it is for Hopper";
  return w;
}
template <class Variants> std::string chosen(const Variants& all, const cuda::attention_work& w) {
  const auto c = choose_kernel(all, w);
  return c.variant == nullptr ? "none" : c.variant->name(c.cost);
}
std::string smallest(std::initializer_list<std::int64_t> sizes, std::int64_t D) {
  for (const std::int64_t n : sizes)
    if (n >= D) return std::to_string(n);
  return "none";
}
/// In f32, tiles in registers are faster from 33 queries and keys on, where heads have up to 128 elements.
TEST(cuda_attention_choice, in_f32_is_the_measured_one) {
  const auto d = hopper();
  for (const std::int64_t D : {4, 32, 36, 64, 65, 80, 96, 100, 128, 132, 256})
    for (std::int64_t S = 1; S < 300; ++S)
      for (const std::int64_t T : {S, std::int64_t(1), std::int64_t(32), std::int64_t(33), std::int64_t(80), std::int64_t(1024)}) {
        const bool tiles = S >= 33 && T >= 33 && D <= 128;
        const std::string wanted =
            tiles ? "f32 tiles, heads of " + smallest({32, 64, 96, 128}, D) : "rows, heads of " + smallest({32, 64, 128, 256}, D);
        const auto w = work(S, T, D, dtype::f32, d);
        ASSERT_EQ(chosen(cuda::attention_portable::variants, w), "attention: " + wanted) << S << ' ' << T << ' ' << D;
        ASSERT_EQ(chosen(cuda::attention_native::variants, w), "attention: " + wanted) << S << ' ' << T << ' ' << D;
        ASSERT_EQ(chosen(cuda::attention_grad_native::variants, w), "gradient of attention: " + wanted) << S << ' ' << T << ' ' << D;
      }
}
TEST(cuda_attention_choice, in_bf16_is_on_tensor_cores) {
  auto d = hopper();
  for (const std::int64_t S : {1, 5, 32, 33, 64, 1024})
    for (const std::int64_t T : {1, 31, 64, 1024})
      for (const std::int64_t D : {8, 32, 40, 64, 72, 96, 104, 128}) {
        const std::string cores = "tensor cores, heads of " + smallest({32, 64, 80, 96, 128}, D);
        d.compute = 90;
        EXPECT_EQ(chosen(cuda::attention_native::variants, work(S, T, D, dtype::bf16, d)),
                  "attention: " + (D == 64 ? "warpgroups, heads of 64" : cores));
        d.compute = 80;
        EXPECT_EQ(chosen(cuda::attention_grad_native::variants, work(S, T, D, dtype::bf16, d)), "gradient of attention: " + cores);
      }
}
/// Some other choice for more sequences would give the rows of a sequence other bits.
TEST(cuda_attention_choice, does_not_depend_on_the_number_of_sequences) {
  const auto d = hopper();
  for (const auto t : {dtype::f32, dtype::bf16})
    for (const std::int64_t S : {1, 31, 33, 100, 1024})
      for (const double sequences : {8.0, 64.0, 1e6})
        EXPECT_EQ(chosen(cuda::attention_native::variants, work(S, S, 64, t, d, sequences)),
                  chosen(cuda::attention_native::variants, work(S, S, 64, t, d)));
}
TEST(cuda_attention_choice, says_what_rules_a_variant_out) {
  auto d = hopper();
  kernel_choices said;
  choose_kernel(cuda::attention_native::variants, work(64, 64, 96, dtype::bf16, d), &said);
  ASSERT_EQ(said.all.size(), 14u);
  EXPECT_EQ(said.all[0].unfit, "it is for heads of another size");
  EXPECT_EQ(said.all[6].unfit, "it multiplies only f32");
  EXPECT_TRUE(said.all[4].chosen) << said.all[4].name;
  d.shared_bytes = 1024;
  said = {};
  EXPECT_EQ(choose_kernel(cuda::attention_native::variants, work(64, 64, 96, dtype::bf16, d), &said).variant, nullptr);
  EXPECT_EQ(said.all[4].unfit, "the device has too little shared memory");
  EXPECT_EQ(cuda::portable_reason(cuda::attention_native::variants, work(64, 64, 96, dtype::bf16, d)),
            "the device has too little shared memory");
}

/// Of cached attention in a batch-invariant plan: the number of rows is no part of the problem.
const cuda::cached_variant& cached(std::int64_t T, std::int64_t heads, std::int64_t groups, std::string_view copies,
                                   std::int64_t chunk = 32) {
  return *choose_kernel(cuda::cached_variants,
                        cuda::cached_problem{.T = T, .heads = heads, .groups = groups, .chunk = chunk, .copies = copies})
              .variant;
}
TEST(cuda_attention_choice, of_cached_attention_divides_from_1025_positions_on) {
  for (const std::int64_t chunk : {8, 16, 32, 64})
    for (const std::string_view copies : {"", "it takes only bf16"})
      for (std::int64_t T = 1; T < 5000; ++T) {
        const auto& one = cached(T, 12, 12, copies, chunk);
        ASSERT_EQ(one.splits, T <= 1024 ? 1 : 8) << T;
        ASSERT_EQ(one.queries, 1);
        ASSERT_EQ(one.copies, T <= 1024 && copies.empty());
        const auto& shared = cached(T, 32, 8, "several query heads share a key-value head", chunk);
        ASSERT_EQ(shared.splits, T <= 1024 ? 1 : 8) << T;
        ASSERT_EQ(shared.queries, 4);
        ASSERT_FALSE(shared.copies);
      }
}
/// In other plans it is the one that an H200 took the least time for, with half of the positions filled.
TEST(cuda_attention_choice, of_cached_attention_depends_on_rows_unless_the_plan_is_batch_invariant) {
  const auto chosen = [](std::int64_t T, std::int64_t rows, std::int64_t heads = 12, std::int64_t groups = 12) {
    cuda::cached_problem p{.T = T, .heads = heads, .groups = groups, .chunk = 32, .rows = rows, .multiprocessors = 132};
    if (heads != groups) p.copies = "several query heads share a key-value head";
    const auto& v = *choose_kernel(cuda::cached_variants, p).variant;
    return v.copies ? std::string("copies") : std::to_string(v.queries) + " heads, " + std::to_string(v.splits) + " parts";
  };
  for (const std::int64_t rows : {1, 2, 4}) EXPECT_EQ(chosen(1024, rows), "1 heads, 4 parts") << rows;
  EXPECT_EQ(chosen(1024, 8), "1 heads, 2 parts");
  EXPECT_EQ(chosen(1024, 11), "1 heads, 1 parts");
  for (const std::int64_t rows : {32, 64}) EXPECT_EQ(chosen(1024, rows), "copies") << rows;
  for (const std::int64_t rows : {1, 8, 64}) EXPECT_EQ(chosen(256, rows), "1 heads, 1 parts") << rows;
  EXPECT_EQ(chosen(2048, 1), "1 heads, 8 parts");
  EXPECT_EQ(chosen(2048, 4), "1 heads, 4 parts");
  EXPECT_EQ(chosen(2048, 8), "1 heads, 2 parts");
  EXPECT_EQ(chosen(2048, 64), "copies");
  EXPECT_EQ(chosen(8192, 1), "1 heads, 8 parts");
  EXPECT_EQ(chosen(8192, 16), "copies");
  EXPECT_EQ(chosen(1024, 1, 32, 8), "1 heads, 4 parts");
  EXPECT_EQ(chosen(1024, 4, 32, 8), "1 heads, 1 parts");
  EXPECT_EQ(chosen(1024, 8, 32, 8), "4 heads, 2 parts");
  EXPECT_EQ(chosen(1024, 64, 32, 8), "4 heads, 1 parts");
}
TEST(cuda_attention_choice, of_cached_attention_keeps_to_the_planned_memory) {
  kernel_choices asked{.wanted = "cached attention: blocks of 1 head, 4 parts"};
  cuda::cached_problem p{.T = 512, .heads = 12, .groups = 12, .chunk = 32, .part_bytes = 1000, .room = 4000};
  EXPECT_EQ(choose_kernel(cuda::cached_variants, p, &asked).variant->splits, 4);
  p.room = 3999;
  asked.all.clear();
  EXPECT_EQ(choose_kernel(cuda::cached_variants, p, &asked).variant->splits, 1);
}

}  // namespace attention_choice_test
