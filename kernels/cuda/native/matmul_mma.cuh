#pragma once
// What matmul_mma.cu and matmul_small.cu have in common: the copies of operands to shared memory, and the sums of a warp. Chunks of 16 bytes
// are permuted by xor with the line's number, so that ldmatrix, which transposes where lines run across K, reads 8 lines from all 32 banks.
#include "device/mma.cuh"
#include "gemm/finish_tile.cuh"

namespace isotope::cuda::gpu {

/// m, n: of a block; slab: along K; warps along M, along N and along K.
template <int M, int N, int Slab, int WarpsM, int WarpsN, int Stages, int WarpsK = 1> struct mma_tile {
  static constexpr int m = M, n = N, slab = Slab, warps_m = WarpsM, warps_n = WarpsN, warps_k = WarpsK, stages = Stages;
  static constexpr int threads = 32 * WarpsM * WarpsN * WarpsK;
  static constexpr int warp_m = M / WarpsM, warp_n = N / WarpsN;          // of a warp
  static constexpr int units_m = warp_m / 16, units_n = warp_n / 16;      // of 16 x 16 sums
  static constexpr int chunks_a = M * Slab / 8, chunks_b = N * Slab / 8;  // of a stage, 16 bytes each
  static constexpr int stage = chunks_a + chunks_b;
  static constexpr int sums_line =
      N + 8;  // floats of a row of sums in shared memory: the padding spreads the rows of a fragment over all banks
};

/// One operand of a block: lines of Outer elements across K if Cross, of Slab elements along K if not.
template <bool Cross, int Outer, class S> struct mma_mover {
  static constexpr int row = (Cross ? Outer : S::slab) / 8;  // chunks of a line
  static constexpr int moves = Outer * S::slab / 8 / S::threads, lines_apart = S::threads / row;
  static_assert(row >= 4 && S::threads % row == 0 && moves * S::threads * 8 == Outer * S::slab && lines_apart % 8 == 0);
  const gemm_operand& x;
  const std::int32_t& outer;  // M or N
  int origin;                 // the first row or column of the tile
  const std::uint16_t* at;    // of the thread's first chunk in the next slab
  bool inside;                // all lines of the tile exist, and start at multiples of 16 bytes

  /// The chunk of shared memory with chunk c of line l. Lines of 64 bytes are permuted by pairs.
  __device__ static int place(int l, int c) { return l * row + (c ^ (row >= 8 ? l & 7 : l >> 1 & 3)); }

  __device__ mma_mover(const gemm_operand& operand, std::int64_t offset, int first, const std::int32_t& size, int k)
      : x(operand), outer(size), origin(first), inside(operand.aligned != 0 && first + Outer <= size) {
    const int l = int(threadIdx.x) / row, c = int(threadIdx.x) % row;
    at = pointer<const std::uint16_t>(x.at) + offset + (Cross ? k + l : origin + l) * x.line + (Cross ? origin : k) + 8 * c;
  }
  /// Starts the copies of the slab at k.
  __device__ void take(uint4* to, int k, int end) {
    const int l = int(threadIdx.x) / row, c = int(threadIdx.x) % row, first = place(l, c);
    if (inside && k + S::slab <= end) {
#pragma unroll
      for (int i = 0; i < moves; ++i) copy_async_16(to + first + i * lines_apart * row, at + i * lines_apart * x.line);
    } else {
#pragma unroll 1
      for (int i = 0; i < moves; ++i) {
        const int line = l + i * lines_apart;
        uint4* chunk = to + first + i * lines_apart * row;
        const int behind = Cross ? outer - origin - 8 * c : end - k - 8 * c;  // elements from the chunk's first one to the end of the line
        const bool there = Cross ? k + line < end : origin + line < outer;
        const std::uint16_t* from = at + i * lines_apart * x.line;
        if (there && behind >= 8 && x.aligned != 0) {
          copy_async_16(chunk, from);
        } else {
          std::uint32_t w[4] = {0, 0, 0, 0};
#pragma unroll
          for (int q = 0; q < 8; ++q)
            if (there && q < behind) w[q / 2] |= std::uint32_t(from[q]) << (16 * (q % 2));
          *chunk = uint4{w[0], w[1], w[2], w[3]};
        }
      }
    }
    at += Cross ? S::slab * x.line : S::slab;
  }
};

template <bool ACross, bool BCross, class S> struct mma_sums {
  using mover_a = mma_mover<ACross, S::m, S>;
  using mover_b = mma_mover<BCross, S::n, S>;
  float of[S::units_m][2 * S::units_n][4];

  /// Loads the fragments of step `k` (16 along K) of a stage. m, n: the first row and column of the warp in the tile.
  __device__ static void load_fragments(const uint4* a, const uint4* b, int k, int m, int n, std::uint32_t (&left)[S::units_m][4],
                                        std::uint32_t (&right)[S::units_n][4]) {
    const int lane = int(threadIdx.x) % 32, low = lane % 16, high = lane / 16, eighth = lane % 8, odd = lane / 8 % 2;
#pragma unroll
    for (int i = 0; i < S::units_m; ++i) {
      if constexpr (ACross) load_matrix_x4_transposed(left[i], a + mover_a::place(16 * k + 8 * high + eighth, m / 8 + 2 * i + odd));
      else load_matrix_x4(left[i], a + mover_a::place(m + 16 * i + low, 2 * k + high));
    }
#pragma unroll
    for (int j = 0; j < S::units_n; ++j) {
      if constexpr (BCross) load_matrix_x4_transposed(right[j], b + mover_b::place(16 * k + low, n / 8 + 2 * j + high));
      else load_matrix_x4(right[j], b + mover_b::place(n + 16 * j + 8 * high + eighth, 2 * k + odd));
    }
  }
  __device__ void multiply(const std::uint32_t (&left)[S::units_m][4], const std::uint32_t (&right)[S::units_n][4]) {
#pragma unroll
    for (int i = 0; i < S::units_m; ++i)
#pragma unroll
      for (int j = 0; j < 2 * S::units_n; ++j) {
        const std::uint32_t pair[2] = {right[j / 2][2 * (j % 2)], right[j / 2][2 * (j % 2) + 1]};
        mma_16x8x16_bf16(of[i][j], left[i], pair);
      }
  }
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < S::units_m; ++i)
#pragma unroll
      for (int j = 0; j < 2 * S::units_n; ++j)
#pragma unroll
        for (int q = 0; q < 4; ++q) of[i][j][q] = 0.0f;
  }
  /// Stores the sums to shared memory, (m, sums_line).
  __device__ void store(float* to, int m, int n) const {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < S::units_m; ++i)
#pragma unroll
      for (int j = 0; j < 2 * S::units_n; ++j) {
        float* p = to + (m + 16 * i + lane / 4) * S::sums_line + n + 8 * j + 2 * (lane % 4);
        *reinterpret_cast<float2*>(p) = float2{of[i][j][0], of[i][j][1]};
        *reinterpret_cast<float2*>(p + 8 * S::sums_line) = float2{of[i][j][2], of[i][j][3]};
      }
  }
};

}  // namespace isotope::cuda::gpu
