// labels: alone
/// The emulated device computes what correct kernels say, and finds each mistake of the kernels in emulator/checks.cu.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulator/runtime.hpp"

namespace isotope::cuda::gpu {
extern "C" {
extern const isotope_emulated::kernel isotope_emulated_check_sum, isotope_emulated_check_swap, isotope_emulated_check_copy,
    isotope_emulated_check_product, isotope_emulated_check_pair, isotope_emulated_check_exchange, isotope_emulated_check_words,
    isotope_emulated_check_bulk, isotope_emulated_check_warpgroup;
}
}  // namespace isotope::cuda::gpu

namespace emulator_test {

using namespace isotope::cuda::gpu;
using isotope_emulated::kernel;

struct check {
  std::uint64_t in, out;
  std::int32_t mode;
};
struct data {
  alignas(16) float in[4096];
  alignas(16) float out[4096];
  data() {
    for (int i = 0; i < 4096; ++i) in[i] = float(i * 37 % 101), out[i] = -1;
  }
  /// Element i of the input as bf16, which has x exactly.
  void put(std::size_t i, float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    reinterpret_cast<std::uint16_t*>(in)[i] = std::uint16_t(bits >> 16);
  }
  void run(const kernel& k, int mode, unsigned blocks, unsigned threads, std::size_t shared = 0, unsigned cluster = 1,
           bool together = false) {
    const check a{reinterpret_cast<std::uint64_t>(in), reinterpret_cast<std::uint64_t>(out), mode};
    isotope_emulated::isotope_emulated_launch(&k, {blocks, 1, 1}, {threads, 1, 1}, shared, &a, cluster, together);
  }
  bool sums(unsigned blocks) const {
    for (unsigned b = 0; b < blocks; ++b) {
      float s = 0;
      for (unsigned i = 0; i < 128; ++i) s += in[128 * b + i];
      if (!(out[b] == s)) return false;
    }
    return true;
  }
};

TEST(emulator, sums_over_a_block_with_shuffles_and_a_barrier) {
  data d;
  d.run(isotope_emulated_check_sum, 0, 8, 128);
  EXPECT_TRUE(d.sums(8));
}
TEST(emulator, without_the_barrier_some_block_is_wrong) {
  data d;
  d.run(isotope_emulated_check_sum, 1, 8, 128);
  EXPECT_FALSE(d.sums(8));
}
TEST(emulator, barriers_that_not_all_threads_reach_end_the_program_with_their_place) {
  data d;
  EXPECT_DEATH(d.run(isotope_emulated_check_sum, 2, 1, 128), "kernel check_sum, block .0,0,0.*__syncthreads.*thread .77,0,0. has returned");
  EXPECT_DEATH(d.run(isotope_emulated_check_sum, 3, 1, 128), "kernel check_sum.*__syncthreads at line.*has reached the one at line");
}
TEST(emulator, more_threads_than_the_launch_bounds_and_writes_behind_shared_memory_end_the_program) {
  data d;
  EXPECT_DEATH(d.run(isotope_emulated_check_sum, 0, 1, 256), "256 threads.*allows 128");
  EXPECT_DEATH(d.run(isotope_emulated_check_sum, 5, 1, 128, 64), "behind its 64 bytes of dynamic shared memory");
}
#if defined(__GNUC__) && !defined(__clang__)  // the checks of g++
TEST(emulator, an_index_behind_a_shared_array_and_a_misaligned_pair_end_the_program) {
  data d;
  EXPECT_DEATH(d.run(isotope_emulated_check_sum, 4, 1, 128), "index 4 out of bounds");
  EXPECT_DEATH(d.run(isotope_emulated_check_pair, 1, 1, 1), "misaligned address");
  d.run(isotope_emulated_check_pair, 0, 1, 1);
  EXPECT_EQ(d.out[0], d.in[0] + d.in[1]);
}
#endif
TEST(emulator, shuffles_exchange_and_those_of_a_part_of_a_warp_end_the_program) {
  data d;
  d.run(isotope_emulated_check_swap, 0, 2, 64);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(d.out[i], d.in[i ^ 1]) << i;
  EXPECT_DEATH(d.run(isotope_emulated_check_swap, 1, 1, 32), "__shfl_xor_sync.*0xffffffff.*thread .1,0,0. waits at __syncwarp");
  EXPECT_DEATH(d.run(isotope_emulated_check_swap, 2, 1, 32), "thread .(16|31),0,0.*its mask leaves out");
  EXPECT_DEATH(d.run(isotope_emulated_check_swap, 3, 1, 32), "reads a lane that takes no part");
}
TEST(emulator, copies_to_shared_memory_arrive_when_they_are_waited_for) {
  data d;
  d.run(isotope_emulated_check_copy, 0, 1, 32, 512);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(d.out[i], (31 - i / 4) == 3 ? 0.0f : d.in[4 * (31 - i / 4) + i % 4]) << i;
  for (const int mode : {1, 2}) {
    d.run(isotope_emulated_check_copy, mode, 1, 32, 512);
    for (int i = 0; i < 128; ++i) EXPECT_TRUE(std::isnan(d.out[i])) << i << " in mode " << mode;
  }
  EXPECT_DEATH(d.run(isotope_emulated_check_copy, 3, 1, 32, 512), "not aligned to 16 bytes");
}
TEST(emulator, products_of_a_warp_are_those_of_plain_loops) {
  data d;
  std::vector<float> a(16 * 16), b(16 * 8);
  for (std::size_t i = 0; i < a.size(); ++i) d.put(i, a[i] = float(int(i * 29 % 17) - 8));
  for (std::size_t i = 0; i < b.size(); ++i) d.put(256 + i, b[i] = float(int(i * 13 % 19) - 9));
  for (const int mode : {0, 2}) {
    d.run(isotope_emulated_check_product, mode, 1, 32, 768);
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 8; ++j) {
        float s = 0;
        for (std::size_t k = 0; k < 16; ++k) s += a[16 * i + k] * b[8 * k + j];
        EXPECT_EQ(d.out[8 * i + j], s) << mode << ": " << i << ", " << j;
      }
  }
  EXPECT_DEATH(d.run(isotope_emulated_check_product, 1, 1, 32, 768), "whole warp is executed by a part of it");
}
TEST(emulator, blocks_of_a_cluster_send_numbers_to_each_other) {
  data d;
  const auto run = [&](int mode) { d.run(isotope_emulated_check_exchange, mode, 4, 32, 512, 2); };
  run(0);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(d.out[i], d.in[i ^ 32]) << i;
  EXPECT_DEATH(run(1), "before the bytes that are on their way to shared memory came");
  EXPECT_DEATH(run(2), "waits in vain at a barrier in shared memory");
  EXPECT_DEATH(run(3), "the shared memory of a block that has ended");
  EXPECT_DEATH(run(4), "a barrier that was not initialised");
}
TEST(emulator, blocks_that_run_together_wait_for_words_of_each_other) {
  data d;
  d.run(isotope_emulated_check_words, 0, 8, 32, 0, 1, true);
  float sum = 0;
  for (int b = 0; b < 8; ++b) EXPECT_EQ(d.out[b], sum += d.in[b]) << b;
  EXPECT_DEATH(d.run(isotope_emulated_check_words, 1, 8, 32, 0, 1, true), "waits in vain at a word that another block stores");
}
TEST(emulator, bulk_copies_come_when_they_are_waited_for_and_warps_count_at_named_barriers) {
  data d;
  d.run(isotope_emulated_check_bulk, 0, 1, 64, 528);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(d.out[i], d.in[i]) << i;
  EXPECT_DEATH(d.run(isotope_emulated_check_bulk, 1, 1, 64, 528), "before the bytes that are on their way to shared memory came");
  EXPECT_DEATH(d.run(isotope_emulated_check_bulk, 2, 1, 64, 528), "not aligned to 16 bytes");
  d.run(isotope_emulated_check_bulk, 3, 1, 64, 528);
  for (int i = 0; i < 128; ++i) EXPECT_TRUE(std::isnan(d.out[i])) << "the phase before the first one has ended: " << i;
  EXPECT_DEATH(d.run(isotope_emulated_check_bulk, 4, 1, 64, 528), "waits in vain at a named barrier");
}
TEST(emulator, products_of_a_warpgroup_are_those_of_plain_loops) {
  data d;
  std::vector<float> a(64 * 64), b(64 * 64);
  for (std::size_t i = 0; i < a.size(); ++i) {
    d.put(i, a[i] = float(int(i * 29 % 17) - 8));
    d.put(a.size() + i, b[i] = float(int(i * 13 % 19) - 9));
  }
  d.run(isotope_emulated_check_warpgroup, 0, 1, 128, 16384);
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 64; ++j) {
      float s = 0;
      for (std::size_t k = 0; k < 64; ++k) s += a[64 * i + k] * b[64 * j + k];
      EXPECT_EQ(d.out[64 * i + j], s) << i << ", " << j;
    }
  EXPECT_DEATH(d.run(isotope_emulated_check_warpgroup, 1, 1, 128, 16384), "returns before it has waited for its products");
  d.run(isotope_emulated_check_warpgroup, 2, 1, 128, 16384);
  for (int i = 0; i < 4096; ++i) EXPECT_EQ(d.out[i], 0.0f) << "sums are there when they are waited for: " << i;
}

}  // namespace emulator_test
