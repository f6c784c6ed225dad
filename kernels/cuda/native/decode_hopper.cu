// architectures: 90a
//
// A step of decoding of one row with two launches a layer: attention with its norm and products, and the MLP with its own. Bound by latency, since each launch needs all results of
// the one before: so a launch has as much between two of these exchanges as a cluster of blocks can do, whose blocks pass numbers to each other through shared memory in
// 0.3 us. native/decode_few_hopper.cu has the halves of more rows. Weights come to shared memory, and cached keys and values to registers, before the launch before has ended. What a launch passes on are parts of the row of the
// residual, one for each cluster, which the next one adds up in their order. Tried on an H200 and no faster: words that carry the number of the run in place of the end
// of a launch, and reading weights of later launches into the L2 cache. Slower: a copy of 128 bytes by the tensor memory accelerator for each row of weights, which
// take 5 us to start; no faster: boxes of weights, as the halves of more rows take them.
#include "decode/attend.cuh"
#include "decode/logits.cuh"
#include "decode/one_row.cuh"

namespace isotope::cuda::gpu {

/// A row of bytes of a matrix of bf16.
__device__ inline const void* row_of(std::uint64_t matrix, std::int64_t line, std::int64_t row, std::int64_t column = 0) {
  return pointer<const std::uint16_t>(matrix) + row * line + column;
}

template <int C> struct decode_one_attention_memory {
  static constexpr int lines = 3 * decode_head, own = C / decode_ranks, narrow = decode_pitch(decode_head),
                       most_bytes = decode_attention_bytes(C);
  decode_line_memory<C, lines> line;
  unsigned char projection[own * narrow];
  decode_one_head<C / 64> head;
};
/// The attention half of a single row.
template <int C> __device__ inline void attention_of_one(const decode_attention& a) {
  using memory = decode_one_attention_memory<C>;
  constexpr int H = C / decode_head, warps = C / 64, share = decode_head / decode_ranks;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  start_dependents();
  const int t = int(threadIdx.x), rank = int(cluster_rank()), head = int(blockIdx.x) / decode_ranks;
  const decode_place place(a, 0, rank);  // its reads take longest
  load_lines(a.rows, s.line, rank, [&](int i) {
    return pointer<const std::uint16_t>(a.weight) + std::int64_t(i / decode_head * C + head * decode_head + i % decode_head) * C;
  });
  load_weights<memory::own, decode_head / 8, memory::narrow>(
      s.projection, [&](int i) { return row_of(a.projection, C, rank * memory::own + i, head * decode_head); });
  if (t == 0) {
    begin_lines(s.line);
    barrier_init(shared_address(&s.head.summed), 1);
    barrier_init_fence();
    barrier_expect(shared_address(&s.head.summed), decode_ranks * (decode_head + 2) * 4);
  }
  cluster_arrive();
  const decode_keys<warps> cached(a, place, head, H);
  const int kind = t / decode_head, column = t % decode_head;
  const bool finishes = t < memory::lines;
  const float bias = finishes ? bf16_value(pointer<const std::uint16_t>(a.bias)[kind * C + head * decode_head + column]) : 0.0f;
  // The row of the caches that the thread appends to, or -1.
  const int append = finishes && kind > 0 && column / share == rank && !place.idle ? (place.slot * H + head) * a.T + place.own : -1;
  const float2 projection_bias = load_projection_bias<C>(a.projection_bias, head, rank);
  prefetch_arguments(a.rows, a.to);
  wait_for_copies();
  cluster_wait();
  prepare_lines(s.line, rank);
  wait_for_dependencies();
  const float y = product_of_line(a.rows, s.line, rank) + bias;
  if (finishes) {
    const std::uint16_t bits = bf16_bits(y);
    s.head.qkv[kind][column] = bf16_value(bits) * (kind == 0 ? a.scale : 1.0f);
    if (append >= 0) pointer<std::uint16_t>(kind == 1 ? a.keys : a.values)[std::int64_t(append) * decode_head + column] = bits;
  }
  __syncthreads();
  attend_one<warps>(place.idle, cached, s.head, rank);
  project_one<C, 2, memory::narrow>(s.projection, s.head.x, a.rows, s.line.residual, projection_bias, a.to, head, rank);
}

template <int C> struct decode_one_mlp_memory {
  static constexpr int hidden = 4 * C / decode_groups, own = C / decode_ranks, narrow = decode_pitch(hidden),
                       most_bytes = decode_mlp_bytes(C);
  decode_line_memory<C, hidden> line;
  unsigned char projection[own * narrow];
  uint4 h[hidden / 8];  // rounded to bf16
};
/// The MLP half of a single row.
template <int C> __device__ inline void mlp_of_one(const decode_mlp& a) {
  using memory = decode_one_mlp_memory<C>;
  static_assert(int(sizeof(memory)) <= memory::most_bytes && memory::hidden <= C / 2);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  start_dependents();
  const int t = int(threadIdx.x), rank = int(cluster_rank()), part = int(blockIdx.x) / decode_ranks, first = part * memory::hidden;
  load_lines(a.rows, s.line, rank, [&](int i) { return pointer<const std::uint16_t>(a.weight) + std::int64_t(first + i) * C; });
  load_weights<memory::own, memory::hidden / 8, memory::narrow>(
      s.projection, [&](int i) { return row_of(a.projection, 4 * C, rank * memory::own + i, first); });
  if (t == 0) begin_lines(s.line);
  cluster_arrive();
  const float bias = t < memory::hidden ? bf16_value(pointer<const std::uint16_t>(a.bias)[first + t]) : 0.0f;
  const float2 projection_bias = load_projection_bias<C>(a.projection_bias, part, rank);
  prefetch_arguments(a.rows, a.to);
  wait_for_copies();
  cluster_wait();
  prepare_lines(s.line, rank);
  wait_for_dependencies();
  const float y = product_of_line(a.rows, s.line, rank) + bias;
  if (t < memory::hidden) reinterpret_cast<std::uint16_t*>(s.h)[t] = bf16_bits(decode_gelu(y));
  __syncthreads();
  project_one<C, memory::hidden / 32, memory::narrow>(s.projection, s.h, a.rows, s.line.residual, projection_bias, a.to, part, rank);
}

// The number is that of the columns.
extern "C" __global__ void __launch_bounds__(384, 2) decode_attention_768(const __grid_constant__ decode_attention a) {
  attention_of_one<768>(a);
}
extern "C" __global__ void __launch_bounds__(384, 2) decode_mlp_768(const __grid_constant__ decode_mlp a) { mlp_of_one<768>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) decode_logits_768(const __grid_constant__ decode_logits a) {
  logits_of_rows<768, 1, 1>(a);
}

}  // namespace isotope::cuda::gpu
