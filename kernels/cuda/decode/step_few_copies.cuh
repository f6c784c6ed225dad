#pragma once
// The copies of a step of up to eight rows, each kind by a thread of its own: weights a layer ahead, and cached rows, of which the first copies of a layer are made as soon as those of
// the layer before have been read.
#include "decode/step_few_lines.cuh"

namespace isotope::cuda::gpu {

/// Waits until the weights' memory is free of cached rows of layer i.
template <int C> __device__ inline void wait_for_lent(decode_step_few_memory<C>& s, int i, int chunks) {
  if (chunks > decode_step_own_chunks) barrier_wait(shared_address(&s.returned), std::uint32_t(i) & 1);
}
template <int C> __device__ inline void copy_weights_of_layers(const decode_step& a, decode_step_few_memory<C>& s, int rank, int head) {
  using memory = decode_step_few_memory<C>;
  constexpr int own = memory::own;
  const auto boxes = [&](unsigned char* to, const tensor_map_bytes& map, int count, int from, std::uint32_t at) {
#pragma unroll 1
    for (int k = 0; k < count; ++k) tensor_load(shared_address(to + k * memory::box), map, from + 32 * k, rank * own, at);
  };
  int chunks = 0;
#pragma unroll 1
  for (int i = 0; i < a.layers; ++i) {
    const decode_step_layer& l = a.layer[i];
    if (i > 0) wait_for_lent<C>(s, i - 1, chunks);
    std::uint32_t at = begin_copies(s, slot_weight, i, sizeof s.weight + 4 * own);
    load_norm(s, l, 0, rank, at);
#pragma unroll 1
    for (int k = 0; k < 3; ++k)
      tensor_load(shared_address(s.weight + k * decode_head * memory::pitch), l.weight, rank * own, k * C + head * decode_head, at);
    at = begin_copies(s, slot_projection, i, sizeof s.projection);
    boxes(s.projection, l.projection, decode_head / 32, head * decode_head, at);
    at = begin_copies(s, slot_up, i, sizeof s.up + 4 * own);
    load_norm(s, l, 1, rank, at);
    tensor_load(shared_address(s.up), l.up, rank * own, head * memory::hidden, at);
    at = begin_copies(s, slot_down, i, sizeof s.down);
    boxes(s.down, l.down, memory::hidden / 32, head * memory::hidden, at);
    if (i == 0) {  // weights depend on no launch before
      wait_for_dependencies();
      chunks = decode_step_few_place(a, rank).chunks();
    }
  }
  // Tiles take the memory of the weights as soon as these have been read.
  static_assert(sizeof s.weight + sizeof s.up + sizeof s.projection + sizeof s.down == decode_step_tiles * memory::tile_bytes);
  const std::uint32_t last = std::uint32_t(a.layers - 1) & 1;
  constexpr int up = sizeof s.weight, projection = up + sizeof s.up, down = projection + sizeof s.projection;
  wait_for_lent<C>(s, a.layers - 1, chunks);
  barrier_wait(shared_address(&s.empty[slot_weight]), last);
#pragma unroll 1
  for (int k = 0; k < decode_step_tiles; ++k) {
    const int end = (k + 1) * memory::tile_bytes;
    if (end > up) barrier_wait(shared_address(&s.empty[slot_up]), last);
    if (end > projection) barrier_wait(shared_address(&s.empty[slot_projection]), last);
    if (end > down) barrier_wait(shared_address(&s.empty[slot_down]), last);
    load_tile(a, s, k, k);
  }
}
template <int C>
__device__ inline void copy_cached_of_layers(const decode_step_few& given, decode_step_few_memory<C>& s, int rank, int head) {
  using memory = decode_step_few_memory<C>;
  const decode_step& a = given.step;
  wait_for_dependencies();
  const decode_step_few_place p(a, rank);
  const int chunks = p.chunks(), row = p.cached_row(a, memory::heads, head);
#pragma unroll 1
  for (int i = 0; i < a.layers; ++i) {
#pragma unroll 1
    for (int c = 0; c < chunks; ++c) {
      const decode_step_few_chunk to(i, c, chunks);
      if (to.uses > 0) barrier_wait(shared_address(&s.cached_empty[to.place]), std::uint32_t(to.uses - 1) & 1);
      if (to.place >= decode_step_own_chunks && c < step_few_chunks)
        barrier_wait(shared_address(&s.empty[slot_weight]), std::uint32_t(i) & 1);
      const std::uint32_t full = shared_address(&s.cached_full[to.place]);
      unsigned char* const keys = s.chunk(to.place);
      barrier_expect(full, decode_step_chunk_bytes);
      tensor_load(shared_address(keys), given.keys[i], 0, row + decode_step_chunk * c, full);
      tensor_load(shared_address(keys + decode_step_chunk_bytes / 2), given.values[i], 0, row + decode_step_chunk * c, full);
    }
    if (chunks <= decode_step_own_chunks) continue;
#pragma unroll 1
    for (int k = decode_step_own_chunks; k < min(chunks, step_few_chunks); ++k)
      barrier_wait(shared_address(&s.cached_empty[k]), std::uint32_t((i + 1) * decode_step_few_chunk::uses_of(k, chunks) - 1) & 1);
    barrier_arrive(shared_address(&s.returned));
  }
}

}  // namespace isotope::cuda::gpu
