#pragma once
// The functions of kernels/cuda/device/hopper.cuh and cluster.cuh.
#include <cstdint>
#include <cstring>

#include "emulated_mma.h"

namespace isotope_emulated {

template <class T> T shared_value(std::uint32_t at) {
  if (at % sizeof(T) != 0) isotope_emulated_fail("reads shared memory at an address that is not a multiple of the number's bytes");
  T x;
  std::memcpy(&x, isotope_emulated_shared_at(at, sizeof x), sizeof x);
  return x;
}
struct matrix_store {
  std::uint32_t row, r[4];
};
inline void store_matrices(void* const* operands) {
  whole_warp(operands);
  for (int matrix = 0; matrix < 4; ++matrix) {
    std::uint16_t m[8][8];
    for (int lane = 0; lane < 32; ++lane) {
      const std::uint32_t pair = static_cast<const matrix_store*>(operands[lane])->r[matrix];
      m[lane / 4][2 * (lane % 4)] = std::uint16_t(pair), m[lane / 4][2 * (lane % 4) + 1] = std::uint16_t(pair >> 16);
    }
    for (int row = 0; row < 8; ++row) {
      const std::uint32_t to = static_cast<const matrix_store*>(operands[8 * matrix + row])->row;
      if (to % 16 != 0) isotope_emulated_fail("store_matrix_x4 writes a row that is not aligned to 16 bytes");
      std::memcpy(isotope_emulated_shared_at(to, 16), m[row], 16);
    }
  }
}

}  // namespace isotope_emulated

namespace isotope::cuda::gpu {

inline void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  isotope_emulated::isotope_emulated_memory_barrier_init(barrier, arrivals);
}
inline void barrier_init_fence() {}
inline std::uint32_t address_in(std::uint32_t own, std::uint32_t rank) { return isotope_emulated::isotope_emulated_address_in(own, rank); }
inline void barrier_arrive(std::uint32_t barrier) { isotope_emulated::isotope_emulated_memory_barrier_arrive(barrier, 0); }
inline void barrier_arrive(std::uint32_t barrier, std::uint32_t rank) { barrier_arrive(address_in(barrier, rank)); }
inline void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  isotope_emulated::isotope_emulated_memory_barrier_arrive(barrier, bytes);
}
inline void barrier_wait(std::uint32_t barrier, std::uint32_t parity, int line = __builtin_LINE()) {
  isotope_emulated::isotope_emulated_memory_barrier_wait(barrier, parity, line);
}
inline void tensor_prefetch(const tensor_map_bytes&) {}
inline void tensor_load(std::uint32_t to, const tensor_map_bytes& map, std::int32_t column, std::int32_t row, std::uint32_t barrier) {
  const std::int32_t first[] = {column, row};
  isotope_emulated::isotope_emulated_tensor_copy(to, &map, first, 2, barrier);
}
inline void tensor_load(std::uint32_t to, const tensor_map_bytes& map, std::int32_t column, std::int32_t row, std::int32_t plane,
                        std::uint32_t barrier) {
  const std::int32_t first[] = {column, row, plane};
  isotope_emulated::isotope_emulated_tensor_copy(to, &map, first, 3, barrier);
}
inline void tensor_load_all(std::uint32_t to, const tensor_map_bytes& map, std::int32_t column, std::int32_t row, std::uint32_t barrier,
                            std::uint16_t ranks) {
  for (std::uint32_t r = 0; r < 16; ++r)
    if ((ranks >> r & 1) != 0) tensor_load(address_in(to, r), map, column, row, address_in(barrier, r));
}
inline void bulk_load(std::uint32_t to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier) {
  isotope_emulated::isotope_emulated_bulk_copy(to, reinterpret_cast<const void*>(from), bytes, barrier);
}
inline void bulk_load(void* to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier) {
  bulk_load(shared_address(to), from, bytes, barrier);
}
inline void prefetch_l2(std::uint64_t at, std::uint32_t bytes) {
  if (at % 16 != 0 || bytes % 16 != 0) isotope_emulated::isotope_emulated_fail("prefetch_l2 of what is not aligned to 16 bytes");
}
inline void named_barrier(int barrier, int threads, int line = __builtin_LINE()) {
  isotope_emulated::isotope_emulated_named_barrier(barrier, threads, true, line);
}
inline void named_barrier_arrive(int barrier, int threads, int line = __builtin_LINE()) {
  isotope_emulated::isotope_emulated_named_barrier(barrier, threads, false, line);
}
inline void publish() {}
template <int Count> inline void take_registers() {}
template <int Count> inline void give_registers() {}

inline void store_matrix_x4(std::uint32_t row, std::uint32_t r0, std::uint32_t r1, std::uint32_t r2, std::uint32_t r3,
                            int line = __builtin_LINE()) {
  isotope_emulated::matrix_store m{row, {r0, r1, r2, r3}};
  isotope_emulated::isotope_emulated_meet(isotope_emulated::store_matrices, 0xffffffffu, &m, "store_matrix_x4", line);
}
inline uint4 load_global_16(std::uint64_t at, bool valid) { return valid ? *reinterpret_cast<const uint4*>(at) : uint4{0, 0, 0, 0}; }
inline void store_global_16(std::uint64_t at, uint4 x, bool valid) {
  if (valid) *reinterpret_cast<uint4*>(at) = x;
}
inline uint4 load_shared_16(std::uint32_t at) { return isotope_emulated::shared_value<uint4>(at); }
inline float load_shared_4(std::uint32_t at) { return isotope_emulated::shared_value<float>(at); }
inline float2 load_shared_8(std::uint32_t at) { return isotope_emulated::shared_value<float2>(at); }
inline void store_shared_16(std::uint32_t at, float4 x) {
  if (at % 16 != 0) isotope_emulated::isotope_emulated_fail("store_shared_16 writes to an address that is not aligned to 16 bytes");
  std::memcpy(isotope_emulated::isotope_emulated_shared_at(at, sizeof x), &x, sizeof x);
}

inline std::uint32_t cluster_rank() {
  const auto& p = isotope_emulated::isotope_emulated_position;
  return p.block.x % p.cluster_size;
}
template <class T> void send_value(const void* own, std::uint32_t barrier, std::uint32_t rank, const T& x) {
  isotope_emulated::isotope_emulated_send(address_in(shared_address(own), rank), &x, sizeof x, address_in(barrier, rank));
}
inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, float x) { send_value(own, barrier, rank, x); }
inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, float x, float y) {
  send_value(own, barrier, rank, float2{x, y});
}
inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, const float4& x) { send_value(own, barrier, rank, x); }
inline void send(const std::uint32_t* own, std::uint32_t barrier, std::uint32_t rank, std::uint32_t x) {
  send_value(own, barrier, rank, x);
}
inline void cluster_arrive() { isotope_emulated::isotope_emulated_cluster_arrive(); }
inline void cluster_wait(int line = __builtin_LINE()) { isotope_emulated::isotope_emulated_cluster_wait(line); }
inline void cluster_sync(int line = __builtin_LINE()) {
  cluster_arrive();
  cluster_wait(line);
}
inline void wait_for_sent(std::uint32_t barrier, std::uint32_t parity, int line = __builtin_LINE()) { barrier_wait(barrier, parity, line); }
inline float cluster_load(const float& own, std::uint32_t rank) {
  return isotope_emulated::shared_value<float>(address_in(shared_address(&own), rank));
}
inline void store_word(std::uint64_t at, float x, std::uint32_t tag) {
  *reinterpret_cast<std::uint64_t*>(at) = std::uint64_t(tag) << 32 | __float_as_uint(x);
  isotope_emulated::isotope_emulated_stored();
}
inline std::uint64_t load_word(std::uint64_t at) {
  isotope_emulated::isotope_emulated_poll();
  return *reinterpret_cast<const std::uint64_t*>(at);
}
inline void load_words(std::uint64_t at, std::uint64_t (&word)[2]) { word[0] = load_word(at), word[1] = load_word(at + 8); }
inline void store_marked(std::uint64_t at, float x, float y, std::uint32_t mark) {
  *reinterpret_cast<std::uint32_t*>(at) = (__float_as_uint(x) & ~1u) | mark;
  *reinterpret_cast<std::uint32_t*>(at + 4) = (__float_as_uint(y) & ~1u) | mark;
  isotope_emulated::isotope_emulated_stored();
}
inline void load_marked(std::uint64_t at, bool wanted, uint4& x) {
  if (!wanted) return;
  isotope_emulated::isotope_emulated_poll();
  x = *reinterpret_cast<const uint4*>(at);
}

}  // namespace isotope::cuda::gpu
