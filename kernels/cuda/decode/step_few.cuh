#pragma once
// Up to eight rows of decoding through all layers in one launch: clusters of eight blocks, each of which has a head and a twelfth of the hidden values. See native/decode_step_few_hopper.cu.
#include "decode/step_few_attend.cuh"
#include "decode/step_few_copies.cuh"

namespace isotope::cuda::gpu {

/// Where the parts of half h - 1 are that block `rank` adds up: of row n and of columns `column` and on of the block's, from cluster `head`.
template <int C> __device__ inline std::uint64_t part_of_rows(const decode_step& a, int h, int head, int rank, int n, int column) {
  constexpr int heads = C / decode_head, own = C / decode_ranks;
  return a.words + 4 * (((std::int64_t(h % 2) * heads + head) * decode_ranks + rank) * decode_most_rows + n) * own + 4 * column;
}
/// The last bit of the parts of layer i: see step_few_words.cuh. `run`: how often they were written before this launch.
__device__ inline std::uint32_t mark_of(std::uint32_t run, int i) { return (run + std::uint32_t(i) + 1) & 1; }

/// The query, key and value of the block's row: an element by each of three times 64 threads.
template <int C>
__device__ inline void finish_query(const decode_step& a, decode_step_few_memory<C>& s, int j, float bias, int i, int head) {
  using memory = decode_step_few_memory<C>;
  const decode_step_few_place& p = s.place;
  const decode_step_few_own& own = s.own_row;
  const int kind = j / decode_head, column = j % decode_head;
  const float y = bias + decode_step_few_first<C, 0>::finish(s, j == 0, p, p.row, j, std::uint32_t(i) & 1, a.rows.epsilon),
              other = __shfl_xor_sync(all_lanes, y, 1);
  if (column % 2 != 0) return;
  const std::uint32_t two = pair_bits<bf16>(y, other);
  if (kind == 0) {
    reinterpret_cast<std::uint32_t*>(s.query)[column / 2] = two;
    return;
  }
  if (p.split != 0) return;
  if (own.last)
    pointer<std::uint32_t>(
        kind == 1 ? a.layer[i].keys
                  : a.layer[i].values)[(std::int64_t((p.slot * memory::heads + head) * a.T + p.own) * decode_head + column) / 2] = two;
  auto* const to = reinterpret_cast<std::uint32_t*>(s.rows[kind - 1] + swizzled(p.row, column / 8) + column % 8 * 2);
  if (!own.together) *to = two;
#pragma unroll 1
  for (int n = 0; own.together && n < p.N; ++n) send(to, shared_address(&s.exchanged), std::uint32_t(n * p.splits), two);
}
/// The residual rows of each half: adds the bias and the parts of all clusters, to four columns of a row by each thread, and has the block's columns ready for the product.
template <int C> __device__ inline void add_parts_of_rows(const decode_step& a, decode_step_few_memory<C>& s, int rank, int head) {
  using memory = decode_step_few_memory<C>;
  constexpr int own = memory::own, heads = memory::heads;
  const int j = int(threadIdx.x) - step_main, row = j / (own / 4), column = j % (own / 4) * 4;
  static_assert(step_few_adders == decode_most_rows * own / 4 && step_few_adders == memory::lines);
  wait_for_dependencies();
  named_barrier(step_x, step_main + step_few_adders);  // s.place
  const decode_step_few_place& p = s.place;
  const bool mine = row < p.N;
  float4 x{0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
  for (int h = 0; h < 2 * a.layers + 1; ++h) {
    const int half = h % 2;
    float bias = 0.0f;
    if (half == 0 && h < 2 * a.layers && p.there)
      bias = bf16_value(pointer<const std::uint16_t>(a.layer[h / 2].bias)[j / decode_head * C + head * decode_head + j % decode_head]);
    if (h == 0) {
      decode_rows first = a.rows;
      first.from = 0;  // these are no sums
      float all[4];
      if (mine) sum_of_parts<C, 4>(first, row, rank * own + column, all), x = {all[0], all[1], all[2], all[3]};
    } else {
      const decode_step_layer& before = a.layer[(h - 1) / 2];
      const auto* const two =
          pointer<const std::uint32_t>(half != 0 ? before.projection_bias : before.down_bias) + (rank * own + column) / 2;
      const std::uint32_t low = two[0], high = two[1];
      x = {x.x + low_value<bf16>(low), x.y + high_value<bf16>(low), x.z + low_value<bf16>(high), x.w + high_value<bf16>(high)};
      named_barrier(step_few_passed, 32 * step_few_columns_warps + step_few_adders);  // other clusters end at about the same time
      if (mine)
        add_marked<heads>(x, part_of_rows<C>(a, h - 1, 0, rank, row, column), 4 * decode_most_rows * C, mark_of(s.run, (h - 1) / 2));
    }
    __syncwarp();
    if (h == 2 * a.layers) {
#pragma unroll 1
      for (int r = 0; mine && r < decode_ranks; ++r)
        send(&s.row(row)[rank * own + column], shared_address(&s.gathered), std::uint32_t(r), x);
      return;
    }
    const int slot = half == 0 ? slot_weight : slot_up;
    barrier_wait(shared_address(&s.full[slot]), std::uint32_t(h / 2) & 1);
    if (mine) {
      *reinterpret_cast<float4*>(&s.residual[row][column]) = x;
      const uint2 g = reinterpret_cast<const uint2*>(s.gain[half])[column / 4];
      const float y[4] = {x.x * low_value<bf16>(g.x), x.y * high_value<bf16>(g.x), x.z * low_value<bf16>(g.y), x.w * high_value<bf16>(g.y)};
      const uint2 high{pair_bits<bf16>(y[0], y[1]), pair_bits<bf16>(y[2], y[3])};
      *reinterpret_cast<uint2*>(s.x[0] + row * memory::pitch + 2 * column) = high;
      *reinterpret_cast<uint2*>(s.x[1] + row * memory::pitch + 2 * column) = {
          pair_bits<bf16>(y[0] - low_value<bf16>(high.x), y[1] - high_value<bf16>(high.x)),
          pair_bits<bf16>(y[2] - low_value<bf16>(high.y), y[3] - high_value<bf16>(high.y))};
    }
    named_barrier_arrive(step_x, step_main + step_few_adders);
    warp_arrive(shared_address(&s.empty[slot]));
    named_barrier(step_all_adders, step_few_adders);
    const int n = j / 16, to = j % 16;
    static_assert(step_few_adders >= 16 * decode_most_rows);
    const float2 m = moments_of_columns<16>(s.residual[n < decode_most_rows ? n : 0]);
    if (n < p.N) {
      if (half == 0 && to < p.splits) send(&s.moments[rank].x, shared_address(&s.arrived[0]), std::uint32_t(n * p.splits + to), m.x, m.y);
      if (half != 0 && to < decode_ranks) send(&s.up_moments[rank][n].x, shared_address(&s.arrived[1]), std::uint32_t(to), m.x, m.y);
    }
    if (half != 0) continue;
    if (p.there) finish_query<C>(a, s, j, bias, h / 2, head);
    named_barrier_arrive(step_few_query, step_main + step_few_adders);
  }
}

/// The part of the residual rows of half h: eight of the block's columns by each warp. `w`: boxes of weights of 32 inputs each; `in`: inputs, rounded to bf16, in lines of Line bytes.
template <int C, int Steps, int Line>
__device__ inline void project_rows(const decode_step& a, const decode_step_few_memory<C>& s, int t, const unsigned char* w,
                                    const unsigned char* in, int h, int rank, int head) {
  using memory = decode_step_few_memory<C>;
  const int lane = t % 32, warp = t / 32, row = lane / 4, column = 8 * warp + 2 * (lane % 4);
  w += 64 * (8 * warp + row) + 16 * (lane % 4);
  in += row * Line + 16 * (lane % 4);
  float sums[4][4] = {};
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    const uint4 b = *reinterpret_cast<const uint4*>(w + memory::box * i), x = *reinterpret_cast<const uint4*>(in + 64 * i);
    const std::uint32_t first[4] = {x.x, 0, x.y, 0}, second[4] = {x.z, 0, x.w, 0}, u[2] = {b.x, b.y}, v[2] = {b.z, b.w};
    mma_16x8x16_bf16(sums[i % 2], first, u);
    mma_16x8x16_bf16(sums[2 + i % 2], second, v);
  }
  const float2 y{(sums[0][0] + sums[1][0]) + (sums[2][0] + sums[3][0]), (sums[0][1] + sums[1][1]) + (sums[2][1] + sums[3][1])};
  // Of all rows, whether they are there or not, so that all words are written equally often.
  store_marked(part_of_rows<C>(a, h, head, rank, row, column), y.x, y.y, mark_of(s.run, h / 2));
}

/// The attention half of layer i.
template <int C>
__device__ inline void attention_of_rows(const decode_step& a, decode_step_few_memory<C>& s, const decode_step_few_place& p,
                                         const decode_step_few_own& own, int i) {
  using memory = decode_step_few_memory<C>;
  using product = decode_step_few_first<C, 0>;
  const int t = thread_of_half(), warp = t / 32, rank = int(cluster_rank()), head = known_here(int(blockIdx.x)) / decode_ranks;
  const std::uint32_t parity = std::uint32_t(i) & 1;
  product::prepare(s, t, p, rank, parity);
  named_barrier(step_x, step_main + step_few_adders);
  product::multiply(s, t, p, rank);
  decode_held_tile held;
  hold_first<C>(s, t, p, i, held);
  named_barrier(step_few_query, step_main + step_few_adders);
  attend_share<C>(a, s, t, p, own, i, held);
  named_barrier(step_all_main, step_main);
  combine_warps<C>(s, t, p, rank);
  gather_attended<C>(s, t, p, parity);
  if (warp >= step_few_columns_warps) return;
  barrier_wait(shared_address(&s.full[slot_projection]), parity);
  project_rows<C, decode_head / 32, memory::line_of_y>(a, s, t, s.projection, s.y, 2 * i, rank, head);
  warp_arrive(shared_address(&s.empty[slot_projection]));
  named_barrier_arrive(step_few_passed, 32 * step_few_columns_warps + step_few_adders);
}
/// The MLP half of layer i: a block finishes an eighth of the cluster's hidden values, of a row by each warp.
template <int C>
__device__ inline void mlp_of_rows(const decode_step& a, decode_step_few_memory<C>& s, const decode_step_few_place& p, int i) {
  using memory = decode_step_few_memory<C>;
  using product = decode_step_few_first<C, 1>;
  const int t = thread_of_half(), lane = t % 32, warp = t / 32, rank = int(cluster_rank()),
            head = known_here(int(blockIdx.x)) / decode_ranks;
  const std::uint32_t parity = std::uint32_t(i) & 1;
  const decode_step_layer& l = a.layer[i];
  const bool finishes = warp < p.N;
  const float bias =
      finishes ? bf16_value(pointer<const std::uint16_t>(l.up_bias)[head * memory::hidden + rank * memory::share + lane]) : 0.0f;
  product::prepare(s, t, p, rank, parity);
  named_barrier(step_x, step_main + step_few_adders);
  product::multiply(s, t, p, rank);
  if (finishes) {
    const float y = decode_gelu(product::finish(s, t == 0, p, warp, lane, parity, a.rows.epsilon) + bias);
    const float other = __shfl_xor_sync(all_lanes, y, 1);
    const std::uint32_t two = lane % 2 == 0 ? pair_bits<bf16>(y, other) : pair_bits<bf16>(other, y);
    std::uint32_t eight[4];  // four lanes for each block
#pragma unroll
    for (int k = 0; k < 4; ++k) eight[k] = __shfl_sync(all_lanes, two, 8 * (lane % 4) + 2 * k);
    send(reinterpret_cast<const float*>(s.h() + warp * memory::line_of_h + 2 * rank * memory::share + 16 * (lane % 4)),
         shared_address(&s.activated), std::uint32_t(lane / 4),
         float4{__uint_as_float(eight[0]), __uint_as_float(eight[1]), __uint_as_float(eight[2]), __uint_as_float(eight[3])});
  }
  if (warp >= step_few_columns_warps) return;
  barrier_wait(shared_address(&s.full[slot_down]), parity);
  wait_for_sent(shared_address(&s.activated), parity);
  if (t == 0) barrier_expect(shared_address(&s.activated), std::uint32_t(2 * p.N * memory::hidden));
  project_rows<C, memory::hidden / 32, memory::line_of_h>(a, s, t, s.down, s.h(), 2 * i + 1, rank, head);
  warp_arrive(shared_address(&s.empty[slot_down]));
  named_barrier_arrive(step_few_passed, 32 * step_few_columns_warps + step_few_adders);
}

/// The last norm and the logits: each of some warps has a slot for tiles of the table.
template <int C> __device__ inline void logits_of_step(const decode_step& a, decode_step_few_memory<C>& s, int N) {
  using memory = decode_step_few_memory<C>;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  if (warp < N) {
    uint4 gain[C / 256], shift[C / 256];
#pragma unroll
    for (int k = 0; k < C / 256; ++k)
      gain[k] = pointer<const uint4>(a.rows.norm_weight)[lane + 32 * k], shift[k] = pointer<const uint4>(a.rows.norm_bias)[lane + 32 * k];
    wait_for_sent(shared_address(&s.gathered), 0);
    const float(&x)[C] = s.row(warp);
    const float2 m = moments_of<C>(x, a.rows.epsilon);
#pragma unroll
    for (int k = 0; k < C / 256; ++k) {
      const int chunk = lane + 32 * k;
      float g[8], b[8], y[8];
      unpack<bf16>(gain[k], g);
      unpack<bf16>(shift[k], b);
#pragma unroll
      for (int e = 0; e < 8; ++e) y[e] = fmaf((x[8 * chunk + e] - m.x) * m.y, g[e], b[e]);
      s.normalised(warp)[chunk] = packed<bf16>(y);
    }
  }
  named_barrier(step_all_main, step_main);
  if (warp >= decode_step_tiles) return;
  constexpr int own = memory::own, box = 16 * memory::pitch;
  const uint4* const row = lane / 4 < N ? s.normalised(lane / 4) : nullptr;
#pragma unroll 1
  for (int i = warp, turn = 0;; i += decode_step_tiles, ++turn) {
    const int line = 16 * (int(blockIdx.x) + i * int(gridDim.x)) + lane / 4;
    if (line - lane / 4 >= a.V) break;
    barrier_wait(shared_address(&s.table[warp]), std::uint32_t(turn) & 1);
    float all[4] = {};
#pragma unroll 2
    for (int k = 0; k < C / own; ++k) {
      float sums[4];
      multiply_tile<own / 32, memory::pitch, 64>(s.tile(warp) + k * box, row != nullptr ? row + k * (own / 8) : nullptr, sums);
#pragma unroll
      for (int e = 0; e < 4; ++e) all[e] += sums[e];
    }
    __syncwarp();
    if (lane == 0) load_tile(a, s, i + decode_step_tiles, warp);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int n = 2 * (lane % 4) + e % 2, at = line + 8 * (e / 2);
      if (n < N && at < a.V) pointer<std::uint16_t>(a.logits)[std::int64_t(n) * a.V + at] = bf16_bits(all[e]);
    }
  }
}

/// Starts the barriers; by one thread.
template <int C> __device__ inline void begin_barriers(decode_step_few_memory<C>& s) {
  const auto init = [](std::uint64_t& barrier, int arrivals) { barrier_init(shared_address(&barrier), std::uint32_t(arrivals)); };
#pragma unroll
  for (int k = 0; k < step_slots; ++k)
    if (k != slot_cache)
      init(s.full[k], 1),
          init(s.empty[k], k == slot_weight || k == slot_up ? step_main_warps + step_few_add_warps : step_few_columns_warps);
#pragma unroll 1
  for (int k = 0; k < step_few_chunks; ++k) init(s.cached_full[k], 1), init(s.cached_empty[k], 2);
#pragma unroll
  for (int half = 0; half < 2; ++half) init(s.arrived[half], 1), init(s.prepared[half], 1);
  init(s.exchanged, 1), init(s.summed, 1), init(s.activated, 1), init(s.gathered, 1), init(s.returned, 1);
#pragma unroll 1
  for (int k = 0; k < decode_step_tiles; ++k) init(s.table[k], 1);
  barrier_init_fence();
}
/// Starts their first phases, of what blocks of the cluster send.
template <int C> __device__ inline void expect_sums(decode_step_few_memory<C>& s, const decode_step_few_place& p, bool together) {
  const auto expect = [](std::uint64_t& barrier, int bytes) { barrier_expect(shared_address(&barrier), std::uint32_t(bytes)); };
  expect(s.prepared[0], int(decode_step_few_first<C, 0>::constant_bytes(p)));
  expect(s.arrived[0], int(decode_step_few_first<C, 0>::product_bytes(p)));
  expect(s.prepared[1], int(decode_step_few_first<C, 1>::constant_bytes(p)));
  expect(s.arrived[1], int(decode_step_few_first<C, 1>::product_bytes(p)));
  if (together) expect(s.exchanged, 4 * p.N * decode_head);
  expect(s.summed, int(summed_bytes(p)));
  expect(s.activated, 2 * p.N * s.hidden);
  expect(s.gathered, 4 * p.N * C);
}

template <int C> __device__ inline void step_of_few(const decode_step_few& given) {
  using memory = decode_step_few_memory<C>;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  const decode_step& a = given.step;
  const int t = int(threadIdx.x), warp = t / 32, rank = int(cluster_rank()), head = int(blockIdx.x) / decode_ranks;
  start_dependents();
  if (t == 0) begin_barriers(s);
  __syncthreads();
  cluster_arrive();
  constexpr int copies = step_main_warps + step_few_add_warps;
  if (warp >= copies) {
    if (t == 32 * copies) copy_weights_of_layers<C>(a, s, rank, head);
    if (t == 32 * (copies + 1)) copy_cached_of_layers<C>(given, s, rank, head);
    __syncwarp();
    cluster_wait();
    return;
  }
  cluster_wait();
  if (warp >= step_main_warps) return add_parts_of_rows<C>(a, s, rank, head);
  wait_for_dependencies();
  if (warp == 0) {
    const decode_step_few_place p(a, rank);
    const decode_step_few_own own(a, p, s.places);
    if (t == 0) s.place = p, s.own_row = own, s.run = *pointer<const std::uint32_t>(a.run), expect_sums(s, p, own.together);
  }
  named_barrier(step_x, step_main + step_few_adders);
#pragma unroll 1
  for (int i = 0; i < a.layers; ++i) {
    attention_of_rows<C>(a, s, s.place, s.own_row, i);
    mlp_of_rows<C>(a, s, s.place, i);
  }
  logits_of_step<C>(a, s, a.rows.N);
  // All blocks have read the number of the run, since each has sent its parts.
  if (blockIdx.x == 0 && t == 0) *pointer<std::uint32_t>(a.run) = s.run + std::uint32_t(a.layers);
}

}  // namespace isotope::cuda::gpu
