#pragma once
// One row of decoding through all layers in one launch: clusters of eight blocks, each of which has a head and a twelfth of the hidden values. See native/decode_step_hopper.cu.
#include "decode/step_lines.cuh"

namespace isotope::cuda::gpu {

/// The copies of all layers, by one thread.
template <int C> __device__ inline void copy_layers(const decode_step& a, decode_step_memory<C>& s, int rank, int head) {
  using memory = decode_step_memory<C>;
  constexpr int own = memory::own;
  const auto weight = [&](int i) {
    const std::uint32_t at = begin_copies(s, slot_weight, i, sizeof s.weight + 4 * own);
    load_norm(s, a.layer[i], 0, rank, at);
#pragma unroll 1
    for (int k = 0; k < 3; ++k)
      tensor_load(shared_address(s.weight + k * decode_head * memory::pitch), a.layer[i].weight, rank * own, k * C + head * decode_head,
                  at);
  };
  const auto rest = [&](int i) {
    std::uint32_t at = begin_copies(s, slot_projection, i, sizeof s.projection);
#pragma unroll 1
    for (int k = 0; k < decode_head / 32; ++k)
      tensor_load(shared_address(s.projection + k * memory::box), a.layer[i].projection, head * decode_head + 32 * k, rank * own, at);
    at = begin_copies(s, slot_up, i, sizeof s.up + 4 * own);
    load_norm(s, a.layer[i], 1, rank, at);
    tensor_load(shared_address(s.up), a.layer[i].up, rank * own, head * memory::hidden, at);
    at = begin_copies(s, slot_down, i, sizeof s.down);
#pragma unroll 1
    for (int k = 0; k < memory::hidden / 32; ++k)
      tensor_load(shared_address(s.down + k * memory::box), a.layer[i].down, head * memory::hidden + 32 * k, rank * own, at);
  };
  weight(0);
  rest(0);
  wait_for_dependencies();
  const decode_step_place p(a, rank);
  const std::uint32_t bytes = std::uint32_t(2 * decode_head * p.cached());
  const std::int64_t from = 2 * ((std::int64_t(p.slot) * memory::heads + head) * a.T + p.first) * decode_head;
#pragma unroll 1
  for (int i = 0; i < a.layers; ++i) {
    if (i > 0) weight(i);
    const std::uint32_t at = begin_copies(s, slot_cache, i, 2 * bytes);
    if (bytes > 0) bulk_load(s.keys, a.layer[i].keys + from, bytes, at), bulk_load(s.values, a.layer[i].values + from, bytes, at);
    if (i > 0) rest(i);
  }
  // Tiles take the memory of the weights as soon as these have been read.
  static_assert(sizeof s.weight + sizeof s.up + sizeof s.projection + sizeof s.down == decode_step_tiles * memory::tile_bytes);
  const std::uint32_t last = std::uint32_t(a.layers - 1) & 1;
#pragma unroll 1
  for (int k = 0; k < decode_step_tiles; ++k) {
    const int end = (k + 1) * memory::tile_bytes, up = sizeof s.weight, projection = up + sizeof s.up,
              down = projection + sizeof s.projection;
    if (k == 0) barrier_wait(shared_address(&s.empty[slot_weight]), last);
    if (end > up) barrier_wait(shared_address(&s.empty[slot_up]), last);
    if (end > projection) barrier_wait(shared_address(&s.empty[slot_projection]), last);
    if (end > down) barrier_wait(shared_address(&s.empty[slot_down]), last);
    load_tile(a, s, k, k);
  }
}

/// The residual row of each half: adds up the parts of all clusters, and has the block's columns ready for the product.
template <int C> __device__ inline void add_parts(const decode_step& a, decode_step_memory<C>& s, int rank) {
  using memory = decode_step_memory<C>;
  constexpr int own = memory::own, heads = memory::heads;
  const int j = int(threadIdx.x) - step_main, lane = j % 32;
  wait_for_dependencies();
  const std::uint32_t run = *pointer<const std::uint32_t>(a.run);
#pragma unroll 1
  for (int h = 0; h < 2 * a.layers + 1; ++h) {
    const int half = h % 2;
    float x[1];
    if (h == 0) {
      sum_of_parts<C, 1>(a.rows, 0, rank * own + j, x);
    } else {
      float part[heads];
      wait_for_words<heads>(a.words + 8 * (std::int64_t((h - 1) % 2) * heads * C + rank * own + j), 8 * C, run * 64 + std::uint32_t(h),
                            part);
      x[0] = part[0];
#pragma unroll
      for (int p = 1; p < heads; ++p) x[0] += part[p];
    }
    if (h == 2 * a.layers) {
#pragma unroll 1
      for (int r = 0; r < decode_ranks; ++r) send(&s.row()[rank * own + j], shared_address(&s.gathered), std::uint32_t(r), x[0]);
      return;
    }
    const int slot = half == 0 ? slot_weight : slot_up;
    barrier_wait(shared_address(&s.full[slot]), std::uint32_t(h / 2) & 1);
    s.residual[j] = x[0];
    const float y = x[0] * bf16_value(reinterpret_cast<const std::uint16_t*>(s.gain[half])[j]);
    const std::uint16_t bits = bf16_bits(y);
    reinterpret_cast<std::uint16_t*>(s.x[0])[j] = bits;
    reinterpret_cast<std::uint16_t*>(s.x[1])[j] = bf16_bits(y - bf16_value(bits));
    named_barrier_arrive(step_x, step_main + step_adders);
    warp_arrive(shared_address(&s.empty[slot]));
    named_barrier(step_all_adders, step_adders);
    if (j < 32) {
      const float2 m = moments_of_columns(s.residual);
      if (lane < decode_ranks) send(&s.moments[half][rank].x, shared_address(&s.arrived[half]), std::uint32_t(lane), m.x, m.y);
    }
  }
}

/// Passes two numbers of the part of the residual row on: of columns lane / 4 of the warp's tile and that plus 8. `h`: the half that ends.
template <int C>
__device__ inline void pass_on(const decode_step& a, int tile, int rank, int head, int h, std::uint32_t run, float low, float high) {
  const int column = rank * (C / decode_ranks) + 16 * tile + int(threadIdx.x) % 32 / 4;
  if (threadIdx.x % 4 != 0) return;
  const std::int64_t at = std::int64_t(head) * C + column;
  const std::uint64_t word = a.words + 8 * (std::int64_t(h % 2) * (C / decode_head) * C + at);
  store_word(word, low, run * 64 + std::uint32_t(h) + 1);
  store_word(word + 64, high, run * 64 + std::uint32_t(h) + 1);
}
/// What cluster 0 adds to its part: the residual row and the bias. `bias`: of columns lane / 4 of the warp's tile and that plus 8.
template <int C> __device__ inline float2 bias_of(std::uint64_t bias, int tile, int rank, int head) {
  const int column = rank * (C / decode_ranks) + 16 * tile + int(threadIdx.x) % 32 / 4;
  if (head != 0 || 16 * tile >= C / decode_ranks) return {0.0f, 0.0f};
  return {bf16_value(pointer<const std::uint16_t>(bias)[column]), bf16_value(pointer<const std::uint16_t>(bias)[column + 8])};
}
template <int C> __device__ inline float2 residual_of(const decode_step_memory<C>& s, int tile, int head) {
  const int column = 16 * tile + int(threadIdx.x) % 32 / 4;
  if (head != 0) return {0.0f, 0.0f};
  return {s.residual[column], s.residual[column + 8]};
}

/// Sends the sums of the block's warps to all blocks of the cluster, and their maximum and total: each of eight warps to one. Lane w has the scale of warp w.
template <class Head> __device__ inline void send_block_sums(Head& s, int rank) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  if (warp >= decode_ranks) return;
  const float2 mine = s.tops[lane % step_main_warps];
  float top = mine.x;
#pragma unroll
  for (int apart = step_main_warps / 2; apart > 0; apart /= 2) top = fmaxf(top, __shfl_xor_sync(all_lanes, top, apart));
  const float scale = exp2f(mine.x - decode_sums::base_of(top));
  float total = mine.y * scale;
#pragma unroll
  for (int apart = step_main_warps / 2; apart > 0; apart /= 2) total += __shfl_xor_sync(all_lanes, total, apart);
  float2 sum[2] = {};
#pragma unroll
  for (int w = 0; w < step_main_warps; ++w) {
    const float2 y = *reinterpret_cast<const float2*>(&s.of_warp[w][2 * lane]);
    const float by = __shfl_sync(all_lanes, scale, w);
    sum[w % 2].x = fmaf(y.x, by, sum[w % 2].x);
    sum[w % 2].y = fmaf(y.y, by, sum[w % 2].y);
  }
  send(&s.sums[rank][2 * lane], shared_address(&s.summed), std::uint32_t(warp), sum[0].x + sum[1].x, sum[0].y + sum[1].y);
  if (lane == 0) send(&s.of[rank].x, shared_address(&s.summed), std::uint32_t(warp), top, total);
}
/// The attention half of layer i.
template <int C>
__device__ inline void attention_step(const decode_step& a, decode_step_memory<C>& s, const decode_step_place& p, int i, std::uint32_t run,
                                      int rank, int head) {
  using memory = decode_step_memory<C>;
  using product = decode_step_lines<C, 0>;
  constexpr int heads = memory::heads, share = decode_head / decode_ranks;
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32, kind = t / decode_head, column = t % decode_head;
  const std::uint32_t parity = std::uint32_t(i) & 1;
  const decode_step_layer& l = a.layer[i];
  const bool finishes = t < memory::lines;
  const float bias = finishes ? bf16_value(pointer<const std::uint16_t>(l.bias)[kind * C + head * decode_head + column]) : 0.0f;
  const float2 projection_bias = bias_of<C>(l.projection_bias, warp, rank, head);
  product::prepare(s, rank, parity);
  named_barrier(step_x, step_main + step_adders);
  product::multiply(s, rank);
  if (finishes) {
    const std::uint16_t bits = bf16_bits(product::finish(s, parity, a.rows.epsilon) + bias);
    if (kind == 0) s.query[column] = bf16_value(bits) * a.scale;
    else if (p.has_own()) (kind == 1 ? s.keys : s.values)[p.own - p.first][column] = bits;
    if (kind > 0 && column / share == rank && !p.idle)
      pointer<std::uint16_t>(kind == 1 ? l.keys : l.values)[((std::int64_t(p.slot) * heads + head) * a.T + p.own) * decode_head + column] =
          bits;
  }
  barrier_wait(shared_address(&s.full[slot_cache]), parity);
  named_barrier(step_all_main, step_main);
  {
    const int chunk = lane % 8 * 8, group = t / 8;
    const float4 low = *reinterpret_cast<const float4*>(&s.query[chunk]), high = *reinterpret_cast<const float4*>(&s.query[chunk + 4]);
    const float q[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    constexpr int turns = decode_step_positions / (step_main / 8);
    uint4 k[turns], v[turns];
    bool seen[turns];
#pragma unroll
    for (int n = 0; n < turns; ++n) {
      const int at = group + n * (step_main / 8);
      seen[n] = at < p.end - p.first;
      k[n] = seen[n] ? *reinterpret_cast<const uint4*>(&s.keys[at][chunk]) : uint4{0, 0, 0, 0};
      v[n] = seen[n] ? *reinterpret_cast<const uint4*>(&s.values[at][chunk]) : uint4{0, 0, 0, 0};
    }
    decode_sums sums;
    sums.add(q, k, v, seen);
    warp_arrive(shared_address(&s.empty[slot_cache]));
    const float2 pair = sums.combine_in_pairs();
    *reinterpret_cast<float2*>(&s.head.of_warp[warp][chunk + (lane & 16) / 4 + (lane & 8) / 4]) = pair;
    if (lane == 0) s.head.tops[warp] = {sums.top, sums.total};
  }
  named_barrier(step_all_main, step_main);
  send_block_sums(s.head, rank);
  if (t < decode_head) {
    wait_for_sent(shared_address(&s.head.summed), parity);
    if (t == 0) barrier_expect(shared_address(&s.head.summed), decode_ranks * (decode_head + 2) * 4);
    float top = s.head.of[0].x;
#pragma unroll
    for (int r = 1; r < decode_ranks; ++r) top = fmaxf(top, s.head.of[r].x);
    const float base = decode_sums::base_of(top);
    float total = 0.0f, y = 0.0f;
#pragma unroll
    for (int r = 0; r < decode_ranks; ++r) {
      const float scale = exp2f(s.head.of[r].x - base);
      total = fmaf(s.head.of[r].y, scale, total);
      y = fmaf(s.head.sums[r][t], scale, y);
    }
    reinterpret_cast<std::uint16_t*>(s.y)[t] = bf16_bits(total == 0.0f ? 0.0f : y / total);
  }
  barrier_wait(shared_address(&s.full[slot_projection]), parity);
  named_barrier(step_all_main, step_main);
  if (16 * warp < memory::own) {
    float sums[4];
    multiply_tile<decode_head / 32, 64, memory::box>(s.projection + 16 * 64 * warp, lane < 4 ? s.y : nullptr, sums);
    const float2 x = residual_of<C>(s, warp, head);
    pass_on<C>(a, warp, rank, head, 2 * i, run, sums[0] + (x.x + projection_bias.x), sums[2] + (x.y + projection_bias.y));
  }
  warp_arrive(shared_address(&s.empty[slot_projection]));
}
/// The MLP half of layer i.
template <int C>
__device__ inline void mlp_step(const decode_step& a, decode_step_memory<C>& s, int i, std::uint32_t run, int rank, int head) {
  using memory = decode_step_memory<C>;
  using product = decode_step_lines<C, 1>;
  constexpr int tiles = memory::own / 16;
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32, tile = warp % tiles, part = warp / tiles;
  const std::uint32_t parity = std::uint32_t(i) & 1;
  const decode_step_layer& l = a.layer[i];
  const bool finishes = t < memory::hidden;
  const float bias = finishes ? bf16_value(pointer<const std::uint16_t>(l.up_bias)[head * memory::hidden + t]) : 0.0f;
  const float2 down_bias = bias_of<C>(l.down_bias, warp, rank, head);
  product::prepare(s, rank, parity);
  named_barrier(step_x, step_main + step_adders);
  product::multiply(s, rank);
  if (finishes) reinterpret_cast<std::uint16_t*>(s.h())[t] = bf16_bits(decode_gelu(product::finish(s, parity, a.rows.epsilon) + bias));
  barrier_wait(shared_address(&s.full[slot_down]), parity);
  named_barrier(step_all_main, step_main);
  if (part < 2) {
    constexpr int steps = memory::hidden / 64;
    float sums[4];
    multiply_tile<steps, 64, memory::box>(s.down + part * steps * memory::box + 16 * 64 * tile,
                                          lane < 4 ? s.h() + part * steps * 4 : nullptr, sums);
    float* second = s.second() + 16 * tile + lane / 4;
    if (part == 1 && lane % 4 == 0) second[0] = sums[0], second[8] = sums[2];
    named_barrier(step_pair + tile, 64);
    if (part == 0) {
      const float2 x = residual_of<C>(s, tile, head);
      pass_on<C>(a, tile, rank, head, 2 * i + 1, run, sums[0] + second[0] + (x.x + down_bias.x), sums[2] + second[8] + (x.y + down_bias.y));
    }
  }
  warp_arrive(shared_address(&s.empty[slot_down]));
}

/// The last norm and the logits: each of some warps has a slot for tiles of the table.
template <int C> __device__ inline void logits_step(const decode_step& a, decode_step_memory<C>& s) {
  using memory = decode_step_memory<C>;
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32;
  uint4 gain{}, shift{};
  if (t < C / 8) gain = pointer<const uint4>(a.rows.norm_weight)[t], shift = pointer<const uint4>(a.rows.norm_bias)[t];
  wait_for_sent(shared_address(&s.gathered), 0);
  if (t < C / 8) {
    const float2 m = moments_of<C>(s.row(), a.rows.epsilon);
    float g[8], b[8], y[8];
    unpack<bf16>(gain, g);
    unpack<bf16>(shift, b);
#pragma unroll
    for (int i = 0; i < 8; ++i) y[i] = fmaf((s.row()[8 * t + i] - m.x) * m.y, g[i], b[i]);
    s.normalised()[t] = packed<bf16>(y);
  }
  named_barrier(step_all_main, step_main);
  if (warp >= decode_step_tiles) return;
  constexpr int own = memory::own, box = 16 * memory::pitch;
#pragma unroll 1
  for (int i = warp, turn = 0;; i += decode_step_tiles, ++turn) {
    const int row = 16 * (int(blockIdx.x) + i * int(gridDim.x)) + lane / 4;
    if (row - lane / 4 >= a.V) break;
    barrier_wait(shared_address(&s.table[warp]), std::uint32_t(turn) & 1);
    float all[4] = {};
#pragma unroll 2
    for (int k = 0; k < C / own; ++k) {
      float sums[4];
      multiply_tile<own / 32, memory::pitch, 64>(s.tile(warp) + k * box, lane < 4 ? s.normalised() + k * (own / 8) : nullptr, sums);
#pragma unroll
      for (int e = 0; e < 4; ++e) all[e] += sums[e];
    }
    __syncwarp();
    if (lane == 0) load_tile(a, s, i + decode_step_tiles, warp);
    if (lane % 4 == 0) {
      std::uint16_t* to = pointer<std::uint16_t>(a.logits) + row;
      if (row < a.V) to[0] = bf16_bits(all[0]);
      if (row + 8 < a.V) to[8] = bf16_bits(all[2]);
    }
  }
}

template <int C> __device__ inline void step_of_one(const decode_step& a) {
  using memory = decode_step_memory<C>;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  const int t = int(threadIdx.x), warp = t / 32, rank = int(cluster_rank()), head = int(blockIdx.x) / decode_ranks;
  start_dependents();
  if (t == 0) {
#pragma unroll 1
    for (int k = 0; k < step_slots; ++k) {
      barrier_init(shared_address(&s.full[k]), 1);
      barrier_init(shared_address(&s.empty[k]), k == slot_weight || k == slot_up ? step_main_warps + step_add_warps : step_main_warps);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      barrier_init(shared_address(&s.arrived[half]), 1), barrier_init(shared_address(&s.prepared[half]), 1);
    barrier_init(shared_address(&s.head.summed), 1);
    barrier_init(shared_address(&s.gathered), 1);
#pragma unroll 1
    for (int k = 0; k < decode_step_tiles; ++k) barrier_init(shared_address(&s.table[k]), 1);
    barrier_init_fence();
    barrier_expect(shared_address(&s.gathered), 4 * C);
    barrier_expect(shared_address(&s.prepared[0]), decode_step_lines<C, 0>::constant_bytes);
    barrier_expect(shared_address(&s.arrived[0]), decode_step_lines<C, 0>::product_bytes);
    barrier_expect(shared_address(&s.prepared[1]), decode_step_lines<C, 1>::constant_bytes);
    barrier_expect(shared_address(&s.arrived[1]), decode_step_lines<C, 1>::product_bytes);
    barrier_expect(shared_address(&s.head.summed), decode_ranks * (decode_head + 2) * 4);
  }
  __syncthreads();
  cluster_arrive();
  if (warp == step_main_warps + step_add_warps) {
    if (t % 32 == 0) copy_layers<C>(a, s, rank, head);
    cluster_wait();
    return;
  }
  cluster_wait();
  if (warp >= step_main_warps) return add_parts<C>(a, s, rank);
  wait_for_dependencies();
  const decode_step_place place(a, rank);
  const std::uint32_t run = *pointer<const std::uint32_t>(a.run);
#pragma unroll 1
  for (int i = 0; i < a.layers; ++i) {
    attention_step<C>(a, s, place, i, run, rank, head);
    mlp_step<C>(a, s, i, run, rank, head);
  }
  logits_step<C>(a, s);
  // All blocks have read the number of the run, since each has sent its parts.
  if (blockIdx.x == 0 && t == 0) *pointer<std::uint32_t>(a.run) = run + 1;
}

}  // namespace isotope::cuda::gpu
