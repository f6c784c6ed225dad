// architectures: 90a
//
// A step of decoding with two launches a layer: attention with its norm and products, and the MLP with its own. Bound by latency, since each launch needs all results of
// the one before: so a launch has as much between two of these exchanges as a cluster of blocks can do, whose blocks pass numbers to each other through shared memory in
// 0.3 us. Weights come to shared memory, and cached keys and values to registers, before the launch before has ended. What a launch passes on are parts of the rows of the
// residual, one for each cluster, which the next one adds up in their order. Tried on an H200 and no faster: words that carry the number of the run in place of the end
// of a launch, and reading weights of later launches into the L2 cache. Slower: a copy of 128 bytes by the tensor memory accelerator for each row of weights, which
// take 5 us to start.
#include "decode/attend.cuh"
#include "decode/one_row.cuh"

namespace isotope::cuda::gpu {

template <int C, int Rows> struct decode_attention_memory {
  static constexpr int most_bytes = decode_attention_bytes(C, Rows);
  static constexpr int own = C / decode_ranks, rows = 3 * decode_head / decode_ranks, pitch = decode_pitch(C),
                       narrow = decode_pitch(decode_head);
  unsigned char weight[rows * pitch], projection[own * narrow];
  decode_row_memory<C, Rows> x;
  decode_head_memory<Rows> head;
  float of_warp[C / 64][Rows][rows];
};

/// A row of bytes of a matrix of bf16.
__device__ inline const void* row_of(std::uint64_t matrix, std::int64_t line, std::int64_t row, std::int64_t column = 0) {
  return pointer<const std::uint16_t>(matrix) + row * line + column;
}

/// The products of the normalised rows, which come from the launch before, and the block's rows of the weight: of_warp[w] are the sums over 64 columns. Ends with a
/// barrier of the block.
template <int C, int Rows, class Memory> __device__ inline void multiply_normalised(const decode_rows& of, Memory& s, int rank) {
  constexpr int rows = Memory::rows;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  gather_rows(of, s.x, rank);
  wait_for_copies();
  const float2 moments = moments_of_rows(of, s.x);
  uint4 x[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) x[i] = normalised(of, s.x, lane / 4, moments, 64 * warp + 32 * i + 8 * (lane % 4));
  float sums[rows / 8][4] = {};
  multiply_rows<rows / 8, 2, Memory::pitch>(decode_chunk<Memory::pitch>(s.weight) + 128 * warp, x, sums);
  if (lane / 4 < Rows) {
#pragma unroll
    for (int i = 0; i < rows / 8; ++i)
      *reinterpret_cast<float2*>(&s.of_warp[warp][lane / 4][8 * i + 2 * (lane % 4)]) = float2{sums[i][0], sums[i][1]};
  }
  __syncthreads();
}
/// One of these products: the sums of all warps, in their order.
template <int C, class Memory> __device__ inline float sum_of_warps(const Memory& s, int row, int item) {
  float y = s.of_warp[0][row][item];
#pragma unroll
  for (int w = 1; w < C / 64; ++w) y += s.of_warp[w][row][item];
  return y;
}

template <int C, int Rows> __device__ inline void attention_half(const decode_attention& a) {
  using memory = decode_attention_memory<C, Rows>;
  constexpr int H = C / decode_head, rows = memory::rows, each = rows / 3;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  start_dependents();
  const int t = int(threadIdx.x), lane = t % 32, N = a.rows.N;
  const int rank = int(cluster_rank()), head = int(blockIdx.x) / decode_ranks;
  load_weights<rows, C / 8, memory::pitch>(
      s.weight, [&](int i) { return row_of(a.weight, C, i / each * C + head * decode_head + rank * each + i % each); });
  load_weights<memory::own, decode_head / 8, memory::narrow>(
      s.projection, [&](int i) { return row_of(a.projection, C, rank * memory::own + i, head * decode_head); });
  load_norm(a.rows, s.x);
  if (t == 0) {
    barrier_init(shared_address(&s.x.arrived), 1);
    barrier_init(shared_address(&s.head.arrived), 1);
    barrier_init(shared_address(&s.head.summed), 1);
    barrier_init_fence();
    barrier_expect(shared_address(&s.x.arrived), std::uint32_t(N * C * 4));
    barrier_expect(shared_address(&s.head.arrived), std::uint32_t(N * 3 * decode_head * 4));
    barrier_expect(shared_address(&s.head.summed), std::uint32_t(N * decode_ranks * (decode_head + 2) * 4));
  }
  cluster_arrive();
  // Which element of queries, keys and values the thread finishes.
  const int row = t / rows, item = t % rows, kind = item / each, column = head * decode_head + rank * each + item % each;
  const bool finishes = t < Rows * rows && row < N;
  const float bias = finishes ? bf16_value(pointer<const std::uint16_t>(a.bias)[kind * C + column]) : 0.0f;
  std::uint64_t append = 0;
  if (finishes && kind > 0) {
    const decode_place p(a, row, rank);
    bool last = !p.idle;
    for (int m = row + 1; m < N; ++m)
      last = last && (pointer<const std::int32_t>(a.sequence)[m] != p.slot || pointer<const std::int32_t>(a.position)[m] != p.own);
    const std::int64_t at = ((std::int64_t(p.slot) * H + head) * a.T + p.own) * decode_head + rank * each + item % each;
    if (last) append = (kind == 1 ? a.keys : a.values) + std::uint64_t(2 * at);
  }
  const float2 projection_bias = load_projection_bias<C>(a.projection_bias, head, rank);
  prefetch_arguments(a.rows, a.to);
  cluster_wait();
  wait_for_dependencies();
  multiply_normalised<C, Rows>(a.rows, s, rank);
  if (finishes) {
    const std::uint16_t bits = bf16_bits(sum_of_warps<C>(s, row, item) + bias);
#pragma unroll
    for (int to = 0; to < decode_ranks; ++to)
      send(&s.head.qkv[row][kind][rank * each + item % each], shared_address(&s.head.arrived), std::uint32_t(to), bf16_value(bits));
    if (append != 0) *pointer<std::uint16_t>(append) = bits;
  }
  wait_for_sent(shared_address(&s.head.arrived));
  // The weights have been read: a block sends its sums when it has the queries, keys and values of all, and these are sent behind a barrier.
  auto* parts = reinterpret_cast<float(*)[decode_ranks][decode_head]>(s.weight);
  static_assert(sizeof s.weight >= Rows * sizeof *parts);
  attend_rows<Rows>(a, s.head, parts, head, H, rank);
  wait_for_sent(shared_address(&s.head.summed));
  combine_rows<Rows>(s.head, parts, N);
  uint4 y[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    y[i] = lane / 4 < N ? *reinterpret_cast<const uint4*>(s.head.x + lane / 4 * s.head.line + 64 * i + 16 * (lane % 4)) : uint4{0, 0, 0, 0};
  project_part<C, Rows, 2, memory::narrow>(s.projection, y, a.rows, s.x, projection_bias, a.to, head, rank);
}

template <int C, int Rows> struct decode_mlp_memory {
  static constexpr int most_bytes = decode_mlp_bytes(C, Rows);
  static constexpr int own = C / decode_ranks, hidden = 4 * C / decode_groups, rows = hidden / decode_ranks, pitch = decode_pitch(C),
                       narrow = decode_pitch(hidden);
  unsigned char weight[rows * pitch], projection[own * narrow];
  decode_row_memory<C, Rows> x;
  float h[Rows][hidden];
  float of_warp[C / 64][Rows][rows];
  std::uint64_t arrived;
};

/// 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
__device__ inline float decode_gelu(float x) {
  constexpr float root = 0.7978845608f, twice = 2.885390082f;  // sqrt(2 / pi), 2 log2(e)
  return x / (1.0f + exp2f(-twice * root * (x + 0.044715f * x * x * x)));
}

template <int C, int Rows> __device__ inline void mlp_half(const decode_mlp& a) {
  using memory = decode_mlp_memory<C, Rows>;
  constexpr int rows = memory::rows, steps = memory::hidden / 32;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  start_dependents();
  const int t = int(threadIdx.x), lane = t % 32, N = a.rows.N;
  const int rank = int(cluster_rank()), part = int(blockIdx.x) / decode_ranks, first = part * memory::hidden + rank * rows;
  load_weights<rows, C / 8, memory::pitch>(s.weight, [&](int i) { return row_of(a.weight, C, first + i); });
  load_weights<memory::own, memory::hidden / 8, memory::narrow>(
      s.projection, [&](int i) { return row_of(a.projection, 4 * C, rank * memory::own + i, part * memory::hidden); });
  load_norm(a.rows, s.x);
  if (t == 0) {
    barrier_init(shared_address(&s.x.arrived), 1);
    barrier_init(shared_address(&s.arrived), 1);
    barrier_init_fence();
    barrier_expect(shared_address(&s.x.arrived), std::uint32_t(N * C * 4));
    barrier_expect(shared_address(&s.arrived), std::uint32_t(N * memory::hidden * 4));
  }
  cluster_arrive();
  const int row = t / rows, item = t % rows;
  const bool finishes = t < Rows * rows && row < N;
  const float bias = finishes ? bf16_value(pointer<const std::uint16_t>(a.bias)[first + item]) : 0.0f;
  const float2 projection_bias = load_projection_bias<C>(a.projection_bias, part, rank);
  prefetch_arguments(a.rows, a.to);
  cluster_wait();
  wait_for_dependencies();
  multiply_normalised<C, Rows>(a.rows, s, rank);
  if (finishes) {
    const float y = decode_gelu(sum_of_warps<C>(s, row, item) + bias);
#pragma unroll
    for (int to = 0; to < decode_ranks; ++to) send(&s.h[row][rank * rows + item], shared_address(&s.arrived), std::uint32_t(to), y);
  }
  wait_for_sent(shared_address(&s.arrived));
  uint4 h[steps];
#pragma unroll
  for (int i = 0; i < steps; ++i)
    h[i] =
        lane / 4 < N && lane / 4 < Rows ? packed_eight(&s.h[lane / 4 < Rows ? lane / 4 : 0][32 * i + 8 * (lane % 4)]) : uint4{0, 0, 0, 0};
  project_part<C, Rows, steps, memory::narrow>(s.projection, h, a.rows, s.x, projection_bias, a.to, part, rank);
}

template <int C> struct decode_one_attention_memory {
  static constexpr int lines = 3 * decode_head, own = C / decode_ranks, narrow = decode_pitch(decode_head),
                       most_bytes = decode_attention_bytes(C, 1);
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
                       most_bytes = decode_mlp_bytes(C, 1);
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

/// A warp has a ring of pieces of eight rows of the table: Stages of them, of Piece elements along C.
template <int C, int Rows> struct decode_logits_memory {
  static constexpr int most_bytes = decode_logits_bytes(C, Rows);
  static constexpr int warps = decode_logits_threads / 32, piece = decode_piece, pieces = C / piece, stages = decode_stages,
                       pitch = decode_pitch(piece), line = decode_pitch(C);
  unsigned char weight[warps][stages][8 * pitch];
  unsigned char y[Rows * line];  // normalised rows
  decode_row_memory<C, Rows> x;
};
template <int C, int Rows> __device__ inline void logits_of_rows(const decode_logits& a) {
  using memory = decode_logits_memory<C, Rows>;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  start_dependents();
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32, N = a.rows.N;
  const int tiles = (a.V + 7) / 8, step = int(gridDim.x) * memory::warps, first = int(blockIdx.x) + int(gridDim.x) * warp;
  const int mine = first < tiles ? (tiles - first + step - 1) / step * memory::pieces : 0;
  const auto load = [&](int i) {
    if (i < mine) {
      const int tile = first + i / memory::pieces * step, column = i % memory::pieces * memory::piece;
      unsigned char* to = s.weight[warp][i % memory::stages];
#pragma unroll
      for (int k = 0; k < 8 * memory::piece / 8 / 32; ++k) {
        const int e = lane + 32 * k, row = e / (memory::piece / 8), chunk = e % (memory::piece / 8);
        const int v = 8 * tile + row < a.V ? 8 * tile + row : a.V - 1;
        copy_async_16(to + row * memory::pitch + 16 * chunk, row_of(a.weight, C, v, column + 8 * chunk));
      }
    }
    copy_async_commit();
  };
  load_norm(a.rows, s.x);
#pragma unroll 1
  for (int i = 0; i < memory::stages; ++i) load(i);
  wait_for_dependencies();
  for (int i = t; i < N * C / 2; i += decode_logits_threads) {
    const int row = i / (C / 2), column = i % (C / 2) * 2;
    float sum[2];
    sum_of_parts<C, 2>(a.rows, row, column, sum);
    s.x.x[row][column] = sum[0], s.x.x[row][column + 1] = sum[1];
  }
  copy_async_wait<memory::stages - 1>();  // the weights of the norm
  __syncthreads();
  const float2 moments = moments_of_rows(a.rows, s.x);
  for (int i = t; i < N * C / 8; i += decode_logits_threads) {
    const int row = i / (C / 8), chunk = i % (C / 8);
    *reinterpret_cast<uint4*>(s.y + row * memory::line + 16 * chunk) =
        normalised(a.rows, s.x, row, Rows == 1 ? moments : s.x.moments[row], 8 * chunk);
  }
  __syncthreads();
  const bool there = lane / 4 < N && lane / 4 < Rows;
  const unsigned char* y = s.y + (there ? lane / 4 : 0) * memory::line + 16 * (lane % 4);
  constexpr int steps = memory::piece / 32;
#pragma unroll 1
  for (int i = 0; i < mine; i += memory::pieces) {
    float sums[1][4] = {};
#pragma unroll
    for (int k = 0; k < memory::pieces; ++k) {
      copy_async_wait<memory::stages - 1>();
      __syncwarp();
      uint4 part[steps];
#pragma unroll
      for (int j = 0; j < steps; ++j) part[j] = there ? *reinterpret_cast<const uint4*>(y + 64 * (k * steps + j)) : uint4{0, 0, 0, 0};
      multiply_rows<1, steps, memory::pitch>(decode_chunk<memory::pitch>(s.weight[warp][(i + k) % memory::stages]), part, sums);
      __syncwarp();
      load(i + k + memory::stages);
    }
    const int row = lane / 4, column = 8 * (first + i / memory::pieces * step) + 2 * (lane % 4);
    if (row < N && row < Rows) {
      std::uint16_t* to = pointer<std::uint16_t>(a.y) + std::int64_t(row) * a.V + column;
      if (column < a.V) to[0] = bf16_bits(sums[0][0]);
      if (column + 1 < a.V) to[1] = bf16_bits(sums[0][1]);
    }
  }
}

// The numbers are the columns and the rows.
extern "C" __global__ void __launch_bounds__(384, 2) decode_attention_768_1(const __grid_constant__ decode_attention a) {
  attention_of_one<768>(a);
}
extern "C" __global__ void __launch_bounds__(384, 2) decode_attention_768_8(const __grid_constant__ decode_attention a) {
  attention_half<768, 8>(a);
}
extern "C" __global__ void __launch_bounds__(384, 2) decode_mlp_768_1(const __grid_constant__ decode_mlp a) { mlp_of_one<768>(a); }
extern "C" __global__ void __launch_bounds__(384, 2) decode_mlp_768_8(const __grid_constant__ decode_mlp a) { mlp_half<768, 8>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) decode_logits_768_1(const __grid_constant__ decode_logits a) {
  logits_of_rows<768, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256, 1) decode_logits_768_8(const __grid_constant__ decode_logits a) {
  logits_of_rows<768, 8>(a);
}

}  // namespace isotope::cuda::gpu
