// architectures: 90a
//
// A step of decoding with two launches a layer, as in decode_hopper.cu, for up to eight rows: every weight is read once, and what a row costs beside it is kept small. A row
// of a step is attended by a block of each head's cluster, or by two or four.
#include "decode/attend_few.cuh"
#include "decode/few_rows.cuh"
#include "decode/logits.cuh"

namespace isotope::cuda::gpu {

template <int C> struct decode_few_attention_memory {
  static constexpr int own = C / decode_ranks, lines = 3 * decode_head, most_bytes = decode_few_attention_bytes(C);
  decode_few_lines<C, lines> line;
  alignas(128) unsigned char projection[2 * own * decode_head];  // two boxes of 32 columns
  decode_few_head<C> head;
};
template <int C> __device__ inline void attention_of_few(const decode_few_attention& given) {
  using memory = decode_few_attention_memory<C>;
  constexpr int H = C / decode_head, own = memory::own, lines = memory::lines;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  const decode_attention& a = given.half;
  start_dependents();
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32, rank = int(cluster_rank()), head = int(blockIdx.x) / decode_ranks,
            N = a.rows.N;
  const std::uint32_t loaded = shared_address(&s.head.loaded), cached = shared_address(&s.head.cached),
                      prepared = shared_address(&s.head.prepared), arrived = shared_address(&s.head.arrived),
                      exchanged = shared_address(&s.head.exchanged), summed = shared_address(&s.head.summed);
  if (t == 0) {
#pragma unroll
    for (const std::uint32_t b : {loaded, cached, prepared, arrived, exchanged, summed}) barrier_init(b, 1);
    barrier_init_fence();
    barrier_expect(loaded, std::uint32_t(2 * own * lines + 2 * own * decode_head + 4 * own));
#pragma unroll
    for (int kind = 0; kind < 3; ++kind)
      tensor_load(shared_address(s.line.weight + kind * decode_head * 2 * own), given.boxes.weight, rank * own,
                  kind * C + head * decode_head, loaded);
#pragma unroll
    for (int k = 0; k < 2; ++k)
      tensor_load(shared_address(s.projection + 64 * k * own), given.boxes.projection, head * decode_head + 32 * k, rank * own, loaded);
    bulk_load(s.line.gain, a.rows.norm_weight + 2 * rank * own, 2 * own, loaded);
    bulk_load(s.line.shift, a.rows.norm_bias + 2 * rank * own, 2 * own, loaded);
  }
  const decode_few_place p(a, head, H, rank);
  if (t == 0) {
    const std::uint32_t bytes = std::uint32_t(2 * decode_head * p.held());
    barrier_expect(cached, 2 * bytes);
    if (bytes > 0) bulk_load(s.head.keys, p.keys, bytes, cached), bulk_load(s.head.values, p.values, bytes, cached);
    if (p.count > decode_held_positions)
      for (const std::uint64_t of : {p.keys, p.values})
        prefetch_l2(of + 2 * decode_head * decode_held_positions, std::uint32_t(2 * decode_head * (p.count - decode_held_positions)));
    barrier_expect(prepared, decode_ranks * lines * 8);
    barrier_expect(arrived, p.there ? decode_ranks * (lines * 4 + 8) : 0);
    barrier_expect(exchanged, std::uint32_t(N * 2 * decode_head * 4));
    barrier_expect(summed, decode_ranks * (decode_head + 2) * 4);
  }
  cluster_arrive();
  // Whether rows have a sequence in common, and whether the block's row is the last one with its place.
  const int slot = lane < N ? pointer<const std::int32_t>(a.sequence)[lane] : -1 - lane,
            place = lane < N ? pointer<const std::int32_t>(a.position)[lane] : -1;
  const std::uint32_t same = __match_any_sync(all_lanes, slot);  // by all lanes, whatever their slot
  const bool together = __any_sync(all_lanes, slot >= 0 && __popc(same) > 1);
  const bool last = !p.idle && !__any_sync(all_lanes, lane > p.row && slot == p.slot && place == p.own);
  if (t < decode_most_rows) s.head.places[t] = slot >= 0 && slot == p.slot ? place : -1;
  const int kind = t / decode_head, column = t % decode_head;
  const bool finishes = t < lines && p.there;
  const float bias = t < lines ? bf16_value(pointer<const std::uint16_t>(a.bias)[kind * C + head * decode_head + column]) : 0.0f;
  // The row of the caches that the thread appends to, or -1.
  const int append = finishes && kind > 0 && p.split == 0 && last ? (p.slot * H + head) * a.T + p.own : -1;
  const float2 projection_bias = load_projection_bias<C>(a.projection_bias, head, rank);
  prefetch_arguments(a.rows, a.to);
  __syncthreads();  // the barriers have been started
  barrier_wait(loaded, 0);
  cluster_wait();
  constants_of_lines<C, lines>(s.line, [&](int, int line, const float4& both) {
    send(&s.head.constants[rank][line / 2].x, prepared, std::uint32_t(lane / 4), both);
  });
  wait_for_dependencies();
  gather_few<C, lines>(a.rows, s.line, rank);
  multiply_gathered<C, lines>(s.line, [&](int, int line, const float2& two) {
    if (lane / 4 < N)
      for (int k = 0; k < p.splits; ++k) send(&s.head.products[rank][line], arrived, std::uint32_t(lane / 4 * p.splits + k), two.x, two.y);
  });
  if (warp < N) {
    const float2 m = moments_of_columns(s.line.residual[warp]);
    if (lane < p.splits) send(&s.head.moments[rank].x, arrived, std::uint32_t(warp * p.splits + lane), m.x, m.y);
  }
  wait_for_sent(prepared, 0);
  wait_for_sent(arrived, 0);
  if (finishes) {
    const float y = bias + product_of_blocks<C>(
                               a.rows.epsilon, [&](int r) { return s.head.moments[r]; }, [&](int r) { return s.head.products[r][t]; },
                               [&](int r) {
                                 const float* two = &s.head.constants[r][t / 2].x + t % 2;
                                 return float2{two[0], two[2]};
                               });
    const std::uint16_t bits = bf16_bits(y);
    s.head.qkv[kind][column] = bf16_value(bits) * (kind == 0 ? a.scale : 1.0f);
    if (append >= 0) pointer<std::uint16_t>(kind == 1 ? a.keys : a.values)[std::int64_t(append) * decode_head + column] = bits;
    if (together && kind > 0 && p.split == 0)
#pragma unroll
      for (int to = 0; to < decode_ranks; ++to) send(&s.head.rows[p.row][kind - 1][column], exchanged, std::uint32_t(to), bf16_value(bits));
  }
  constexpr int groups = 4 * decode_few_head<C>::warps;
  auto ahead = decode_two_turns::of<groups>(p, decode_held_positions / groups);
  barrier_wait(cached, 0);
  if (together) wait_for_sent(exchanged, 0);
  __syncthreads();
  if (together) attend_share<true, C>(a, s.head, p, ahead);
  else attend_share<false, C>(a, s.head, p, ahead);
  combine_shares<C>(a, s.head, p, rank);
  project_few<C, lines, 2>([&](int i) { return *reinterpret_cast<const uint4*>(s.projection + 64 * (i * own + t / 4) + 16 * (t % 4)); },
                           [&](int i) { return *reinterpret_cast<const uint4*>(decode_chunk<s.head.line>(s.head.x) + 64 * i); }, a.rows,
                           s.line, projection_bias, a.to, head, rank);
}

template <int C> struct decode_few_mlp_memory {
  static constexpr int own = C / decode_ranks, hidden = 4 * C / decode_groups, lines = hidden / decode_ranks,
                       line_of_h = decode_pitch(hidden), most_bytes = decode_few_mlp_bytes(C);
  decode_few_lines<C, hidden> line;
  alignas(128) unsigned char projection[2 * own * hidden];  // two boxes of 96 columns
  float4 constants[decode_ranks][lines / 2];                // of two of the block's lines each, from each block
  float products[decode_ranks][decode_most_rows][lines];
  float2 moments[decode_ranks][decode_most_rows];
  alignas(16) unsigned char h[decode_most_rows * line_of_h];  // rounded to bf16
  std::uint64_t loaded, prepared, arrived, activated;
};
template <int C> __device__ inline void mlp_of_few(const decode_few_mlp& given) {
  using memory = decode_few_mlp_memory<C>;
  constexpr int own = memory::own, hidden = memory::hidden, lines = memory::lines, steps = hidden / 32, box = decode_box;
  static_assert(int(sizeof(memory)) <= memory::most_bytes && lines % 8 == 0 && own == box && hidden == 2 * box);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  const decode_mlp& a = given.half;
  start_dependents();
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32, rank = int(cluster_rank()), part = int(blockIdx.x) / decode_ranks,
            N = a.rows.N;
  const std::uint32_t loaded = shared_address(&s.loaded), prepared = shared_address(&s.prepared), arrived = shared_address(&s.arrived),
                      activated = shared_address(&s.activated);
  if (t == 0) {
#pragma unroll
    for (const std::uint32_t b : {loaded, prepared, arrived, activated}) barrier_init(b, 1);
    barrier_init_fence();
    barrier_expect(loaded, std::uint32_t(4 * own * hidden + 4 * own));
    tensor_load(shared_address(s.line.weight), given.boxes.weight, rank * own, part * hidden, loaded);
#pragma unroll
    for (int k = 0; k < 2; ++k)
      tensor_load(shared_address(s.projection + 2 * box * k * own), given.boxes.projection, part * hidden + box * k, rank * own, loaded);
    bulk_load(s.line.gain, a.rows.norm_weight + 2 * rank * own, 2 * own, loaded);
    bulk_load(s.line.shift, a.rows.norm_bias + 2 * rank * own, 2 * own, loaded);
    barrier_expect(prepared, decode_ranks * lines * 8);
    barrier_expect(arrived, std::uint32_t(decode_ranks * N * (lines * 4 + 8)));
    barrier_expect(activated, std::uint32_t(N * hidden * 2));
  }
  cluster_arrive();
  const int row = t / lines, item = t % lines;
  const bool finishes = row < N;
  const float bias = finishes ? bf16_value(pointer<const std::uint16_t>(a.bias)[part * hidden + rank * lines + item]) : 0.0f;
  const float2 projection_bias = load_projection_bias<C>(a.projection_bias, part, rank);
  prefetch_arguments(a.rows, a.to);
  __syncthreads();  // the barriers have been started
  barrier_wait(loaded, 0);
  cluster_wait();
  constants_of_lines<C, hidden>(s.line, [&](int tile, int line, const float4& both) {
    const int to = tile / (lines / 8);
    if (lane < 4) send(&s.constants[rank][(line - to * lines) / 2].x, prepared, std::uint32_t(to), both);
  });
  wait_for_dependencies();
  gather_few<C, hidden>(a.rows, s.line, rank);
  multiply_gathered<C, hidden>(s.line, [&](int tile, int line, const float2& two) {
    const int to = tile / (lines / 8);
    if (lane / 4 < N) send(&s.products[rank][lane / 4][line - to * lines], arrived, std::uint32_t(to), two.x, two.y);
  });
  if (warp < N) {
    const float2 m = moments_of_columns(s.line.residual[warp]);
    if (lane < decode_ranks) send(&s.moments[rank][warp].x, arrived, std::uint32_t(lane), m.x, m.y);
  }
  wait_for_sent(prepared, 0);
  wait_for_sent(arrived, 0);
  float y = 0.0f;
  if (finishes) {
    y = decode_gelu(bias + product_of_blocks<C>(
                               a.rows.epsilon, [&](int r) { return s.moments[r][row]; }, [&](int r) { return s.products[r][row][item]; },
                               [&](int r) {
                                 const float* two = &s.constants[r][item / 2].x + item % 2;
                                 return float2{two[0], two[2]};
                               }));
  }
  const float other = __shfl_xor_sync(all_lanes, y, 1);
  if (finishes) {  // of two threads, one sends both numbers to the first blocks, the other one to the others
    const bool odd = item % 2 != 0;
    const std::uint32_t two = odd ? pair_bits<bf16>(other, y) : pair_bits<bf16>(y, other);
    const auto* at = reinterpret_cast<const std::uint32_t*>(s.h + row * memory::line_of_h + 2 * (rank * lines + item / 2 * 2));
#pragma unroll
    for (int k = 0; k < decode_ranks / 2; ++k) send(at, activated, std::uint32_t((odd ? decode_ranks / 2 : 0) + k), two);
  }
  wait_for_sent(activated, 0);
  project_few<C, hidden, steps>(
      [&](int i) { return *reinterpret_cast<const uint4*>(s.projection + 2 * box * (i / 3 * own + t / 4) + 64 * (i % 3) + 16 * (t % 4)); },
      [&](int i) { return *reinterpret_cast<const uint4*>(decode_chunk<memory::line_of_h>(s.h) + 64 * i); }, a.rows, s.line,
      projection_bias, a.to, part, rank);
}

extern "C" __global__ void __launch_bounds__(256, 1) decode_few_logits_768(const __grid_constant__ decode_logits a) {
  logits_of_rows<768, decode_most_rows, decode_few_logits_ranks>(a);
}
extern "C" __global__ void __launch_bounds__(384, 2) decode_few_attention_768(const __grid_constant__ decode_few_attention a) {
  attention_of_few<768>(a);
}
extern "C" __global__ void __launch_bounds__(384, 2) decode_few_mlp_768(const __grid_constant__ decode_few_mlp a) { mlp_of_few<768>(a); }

}  // namespace isotope::cuda::gpu
