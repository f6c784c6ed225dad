// flags: -fmad=false
//
// A matmul without tensor cores. Bound by flops: fused multiply-adds in f32, whatever the operands' format. 256 threads compute a tile of
// 128 x 128, 8 x 8 sums each as four blocks of 4 x 4; where tiles are few, a tile has 64 x 64 with one block each. Slabs of 16 along K are
// in two stages of shared memory, both operands K-major. The next slab comes by asynchronous copies if its lines run across K and are f32;
// otherwise it is in registers while one is multiplied, and is converted and transposed on the way. On an H100, one block on a
// multiprocessor without spilled registers was as fast as two with some, or faster; slabs of 8 were slower. Each sum adds its terms in the order of K: the same bits in every run.
//
// Where even those tiles are few, the time of a single tile counts: then tiles have 32 x 32 in slabs of 64, and each of four teams of 64
// threads multiplies a quarter of a slab. The teams' sums are added in order.
//
// Quads are permuted by xor with a multiple of k / 4, so that rows need no padding: the transposing store of adjacent lines then touches
// all 32 banks.
#include "device/mma.cuh"
#include "gemm/epilogue.cuh"

namespace isotope::cuda::gpu {

struct any_format {};  // known when the kernel runs

template <class T> __device__ inline float element(std::uint64_t at, std::int64_t i, int type) {
  if constexpr (sizeof(T) == 4) return pointer<const float>(at)[i];
  else if constexpr (sizeof(T) == 2) return bf16_value(pointer<const std::uint16_t>(at)[i]);
  else return load(at, i, type);
}
template <class T> __device__ inline float4 quad(std::uint64_t at, std::int64_t i, int type) {
  if constexpr (sizeof(T) == 4) {
    return *reinterpret_cast<const float4*>(pointer<const float>(at) + i);
  } else if constexpr (sizeof(T) == 2) {
    const uint2 u = *reinterpret_cast<const uint2*>(pointer<const std::uint16_t>(at) + i);
    return float4{__uint_as_float(u.x << 16), __uint_as_float(u.x & 0xffff0000u), __uint_as_float(u.y << 16),
                  __uint_as_float(u.y & 0xffff0000u)};
  } else {
    return float4{load(at, i, type), load(at, i + 1, type), load(at, i + 2, type), load(at, i + 3, type)};
  }
}

/// How a block of threads is divided.
template <int Tile, int Slab, int Side, int Teams> struct simt_tile {
  static constexpr int tile = Tile, slab = Slab, side = Side, teams = Teams;  // side: threads of a team along M and along N
  static constexpr int team = side * side, threads = team * teams;
  static constexpr int blocks = tile / (4 * side);                   // of 4 x 4 sums, along each axis
  static constexpr int row = tile / 4, run = slab / 4;               // quads of a line across K, along K
  static constexpr int turn = run == 2 ? 4 : 2;                      // the permutation's step from one quad along K to the next
  static constexpr int stage = slab * row, moves = stage / threads;  // in quads; quads of an operand that a thread moves
  static constexpr int sums = 4 * side * row * teams, memory = sums > 4 * stage ? sums : 4 * stage;  // quads of shared memory
};
using tile_128 = simt_tile<128, 16, 16, 1>;
using tile_64 = simt_tile<64, 16, 16, 1>;
using tile_32 = simt_tile<32, 64, 8, 4>;

/// Moves slabs of one operand to shared memory. What it can read from the arguments again does not take registers.
template <class T, bool Cross, class S> struct simt_mover {
  static constexpr int lines_apart = S::threads / (Cross ? S::row : S::run);  // lines between the quads of a thread
  const gemm_operand& x;
  const std::int32_t& outer;                               // M or N
  int origin;                                              // the first row or column of the tile
  std::uint64_t at;                                        // of the thread's first quad in the next slab
  static constexpr bool direct = Cross && sizeof(T) == 4;  // no conversion and no transposition on the way
  float4 next[direct ? 1 : S::moves];

  __device__ int bytes() const { return sizeof(T) == 4 ? 4 : sizeof(T) == 2 ? 2 : x.type == f32 ? 4 : 2; }
  /// The line and the first element of quad e of the slab at k.
  __device__ int line_of(int k, int e) const { return Cross ? k + e / S::row : origin + e / S::run; }
  __device__ int place_of(int k, int e) const { return Cross ? origin + 4 * (e % S::row) : k + 4 * (e % S::run); }
  __device__ std::uint64_t move(int i) const { return at + std::uint64_t(i * lines_apart * x.line * bytes()); }

  __device__ simt_mover(const gemm_operand& operand, std::int64_t offset, int first, const std::int32_t& size, int k)
      : x(operand), outer(size), origin(first) {
    const int e = int(threadIdx.x);
    at = x.at + std::uint64_t((offset + line_of(k, e) * x.line + place_of(k, e)) * bytes());
  }

  /// Starts to move the slab at k to `to`: a slab whose lines run across K, by asynchronous copies; another, into registers.
  __device__ void take(float4* to, int k, int end) {
    const bool whole = x.aligned != 0 && origin + S::tile <= outer && k + S::slab <= end;
    if constexpr (direct) {
#pragma unroll
      for (int i = 0; i < S::moves; ++i) {
        const int e = int(threadIdx.x) + i * S::threads;
        if (whole) copy_async_16(to + place_across(e), pointer<const float4>(move(i)));
        else to[place_across(e)] = checked(move(i), line_of(k, e), place_of(k, e), end, outer);
      }
    } else if (whole) {
#pragma unroll
      for (int i = 0; i < S::moves; ++i) next[i] = quad<T>(move(i), 0, x.type);
    } else {
#pragma unroll
      for (int i = 0; i < S::moves; ++i) {
        const int e = int(threadIdx.x) + i * S::threads;
        next[i] = checked(move(i), line_of(k, e), place_of(k, e), Cross ? end : outer, Cross ? outer : end);
      }
    }
    at += std::uint64_t((Cross ? S::slab * x.line : S::slab) * bytes());
  }
  /// The quad at `from`, which is elements p to p + 3 of line l; zeros beyond the operand.
  __device__ float4 checked(std::uint64_t from, int l, int p, int lines, int length) const {
    float4 y{0.0f, 0.0f, 0.0f, 0.0f};
    if (l >= lines) return y;
    if (x.aligned != 0 && p + 3 < length) return quad<T>(from, 0, x.type);
    if (p < length) y.x = element<T>(from, 0, x.type);
    if (p + 1 < length) y.y = element<T>(from, 1, x.type);
    if (p + 2 < length) y.z = element<T>(from, 2, x.type);
    if (p + 3 < length) y.w = element<T>(from, 3, x.type);
    return y;
  }
  /// The place of quad e of a slab whose lines run across K.
  __device__ static int place_across(int e) { return e / S::row * S::row + ((e % S::row) ^ (S::turn * (e / S::row / 4 % 4))); }
  /// Stores the slab K-major: (slab, tile).
  __device__ void put(float4* to) const {
    if constexpr (!direct) put_registers(to);
  }
  __device__ void put_registers(float4* to) const {
#pragma unroll
    for (int i = 0; i < S::moves; ++i) {
      const int e = int(threadIdx.x) + i * S::threads;
      if constexpr (Cross) {
        to[place_across(e)] = next[i];
      } else {
        float* element =
            reinterpret_cast<float*>(to + 4 * (e % S::run) * S::row + ((e / S::run / 4) ^ (S::turn * (e % S::run % 4)))) + e / S::run % 4;
        element[0] = next[i].x;
        element[4 * S::row] = next[i].y;
        element[8 * S::row] = next[i].z;
        element[12 * S::row] = next[i].w;
      }
    }
  }
};

template <class S> struct simt_sums {
  float4 of[4 * S::blocks][S::blocks];

  /// Multiplies `slab / teams` steps of K from step `first` on, a multiple of 4. The permutation changes every four steps, so four steps
  /// share their addresses.
  __device__ void multiply(const float4* left, const float4* right, int x, int y, int first) {
#pragma unroll
    for (int group = 0; group < S::slab / S::teams; group += 4) {
      const float4 *a = left + first * S::row + (x ^ (S::turn * (group / 4 % 4))),
                   *b = right + first * S::row + (y ^ (S::turn * (group / 4 % 4)));
#pragma unroll
      for (int k = group; k < group + 4; ++k) {
        float4 rows[S::blocks], columns[S::blocks];
#pragma unroll
        for (int i = 0; i < S::blocks; ++i) {
          rows[i] = a[k * S::row + S::side * i];
          columns[i] = b[k * S::row + S::side * i];
        }
#pragma unroll
        for (int i = 0; i < S::blocks; ++i)
#pragma unroll
          for (int j = 0; j < S::blocks; ++j) {
            add(of[4 * i][j], rows[i].x, columns[j]);
            add(of[4 * i + 1][j], rows[i].y, columns[j]);
            add(of[4 * i + 2][j], rows[i].z, columns[j]);
            add(of[4 * i + 3][j], rows[i].w, columns[j]);
          }
      }
    }
  }
  __device__ static void add(float4& sum, float a, const float4& b) {
    sum.x = fmaf(a, b.x, sum.x);
    sum.y = fmaf(a, b.y, sum.y);
    sum.z = fmaf(a, b.z, sum.z);
    sum.w = fmaf(a, b.w, sum.w);
  }
};

template <class A, class B, bool ACross, bool BCross, class S> __device__ inline void simt(const gemm& g) {
  __shared__ float4 memory[S::memory];  // two stages of each operand, then the sums of a block of rows
  float4 *left = memory, *right = memory + 2 * S::stage;
  const int down = (g.rows + S::tile - 1) / S::tile, across = (g.columns + S::tile - 1) / S::tile;
  int tile_row, tile_column;
  tile_at(int(blockIdx.x), down, across, tile_row, tile_column);
  const int m0 = tile_row * S::tile, n0 = tile_column * S::tile;
  const int batch = g.first + int(blockIdx.z) / g.parts, part = int(blockIdx.z) % g.parts;
  const std::int64_t begin64 = std::int64_t(part) * g.part_depth;
  const int begin = int(begin64 < g.depth ? begin64 : g.depth),
            end = int(begin64 + g.part_depth < g.depth ? begin64 + g.part_depth : g.depth);

  // 32 adjacent threads have 4 x 8 blocks: they read 16 rows and 32 columns at a time.
  const int t = int(threadIdx.x) % S::team, team = int(threadIdx.x) / S::team, beside = S::side / 8;
  const int x = t / 32 / beside * 4 + t % 32 / 8, y = t / 32 % beside * 8 + t % 8;
  const int first = team * (S::slab / S::teams);
  simt_mover<A, ACross, S> a(g.a, batch_offset(batch, g.inner, g.a.outer, g.a.inner), m0, g.rows, begin);
  simt_mover<B, BCross, S> b(g.b, batch_offset(batch, g.inner, g.b.outer, g.b.inner), n0, g.columns, begin);
  simt_sums<S> sums;
#pragma unroll
  for (int i = 0; i < 4 * S::blocks; ++i)
#pragma unroll
    for (int j = 0; j < S::blocks; ++j) sums.of[i][j] = float4{0.0f, 0.0f, 0.0f, 0.0f};

  if (begin < end) {
    a.take(left, begin, end);
    b.take(right, begin, end);
    a.put(left);
    b.put(right);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    int stage = 0;
#pragma unroll 1
    for (int k = begin; k < end; k += S::slab) {
      const bool more = k + S::slab < end;
      const int other = stage ^ S::stage;
      if (more) {
        a.take(left + other, k + S::slab, end);
        b.take(right + other, k + S::slab, end);
        copy_async_commit();
      }
      sums.multiply(left + stage, right + stage, x, y, first);
      if (more) {
        a.put(left + other);
        b.put(right + other);
      }
      stage = other;
      copy_async_wait<0>();
      __syncthreads();
    }
  }

  // The sums of 4 side rows at a time pass through shared memory, (teams, 4 side, tile), so that each thread finishes eight adjacent
  // columns.
  constexpr int band = 4 * S::side, eights = band * S::tile / 8;
#pragma unroll
  for (int block = 0; block < S::blocks; ++block) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < S::blocks; ++j) memory[(team * band + 4 * x + i) * S::row + S::side * j + y] = sums.of[4 * block + i][j];
    __syncthreads();
#pragma unroll 1
    for (int e = int(threadIdx.x); e < eights; e += S::threads) {
      const int r = e / (S::tile / 8), c = e % (S::tile / 8), m = m0 + block * band + r, n = n0 + 8 * c;
      if (m >= g.rows || n >= g.columns) continue;
      float z[8] = {};
#pragma unroll
      for (int other = 0; other < S::teams; ++other) {
        const float4 u = memory[(other * band + r) * S::row + 2 * c], v = memory[(other * band + r) * S::row + 2 * c + 1];
        z[0] = other == 0 ? u.x : plus(z[0], u.x);
        z[1] = other == 0 ? u.y : plus(z[1], u.y);
        z[2] = other == 0 ? u.z : plus(z[2], u.z);
        z[3] = other == 0 ? u.w : plus(z[3], u.w);
        z[4] = other == 0 ? v.x : plus(z[4], v.x);
        z[5] = other == 0 ? v.y : plus(z[5], v.y);
        z[6] = other == 0 ? v.z : plus(z[6], v.z);
        z[7] = other == 0 ? v.w : plus(z[7], v.w);
      }
      finish_eight(g, batch, part, m, n, z, g.columns - n < 8 ? g.columns - n : 8);
    }
  }
}

using half_format = std::uint16_t;  // bf16

extern "C" __global__ void __launch_bounds__(256) matmul_f32_128_nn(const __grid_constant__ gemm g) {
  simt<float, float, false, true, tile_128>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_128_nt(const __grid_constant__ gemm g) {
  simt<float, float, false, false, tile_128>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_128_tn(const __grid_constant__ gemm g) {
  simt<float, float, true, true, tile_128>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_128_tt(const __grid_constant__ gemm g) {
  simt<float, float, true, false, tile_128>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_64_nn(const __grid_constant__ gemm g) {
  simt<float, float, false, true, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_64_nt(const __grid_constant__ gemm g) {
  simt<float, float, false, false, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_64_tn(const __grid_constant__ gemm g) {
  simt<float, float, true, true, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_64_tt(const __grid_constant__ gemm g) {
  simt<float, float, true, false, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_32_nn(const __grid_constant__ gemm g) {
  simt<float, float, false, true, tile_32>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_32_nt(const __grid_constant__ gemm g) {
  simt<float, float, false, false, tile_32>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_32_tn(const __grid_constant__ gemm g) {
  simt<float, float, true, true, tile_32>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f32_32_tt(const __grid_constant__ gemm g) {
  simt<float, float, true, false, tile_32>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_bf16_128_nn(const __grid_constant__ gemm g) {
  simt<half_format, half_format, false, true, tile_128>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_bf16_128_nt(const __grid_constant__ gemm g) {
  simt<half_format, half_format, false, false, tile_128>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_bf16_128_tn(const __grid_constant__ gemm g) {
  simt<half_format, half_format, true, true, tile_128>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_bf16_128_tt(const __grid_constant__ gemm g) {
  simt<half_format, half_format, true, false, tile_128>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_bf16_64_nn(const __grid_constant__ gemm g) {
  simt<half_format, half_format, false, true, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_bf16_64_nt(const __grid_constant__ gemm g) {
  simt<half_format, half_format, false, false, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_bf16_64_tn(const __grid_constant__ gemm g) {
  simt<half_format, half_format, true, true, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_bf16_64_tt(const __grid_constant__ gemm g) {
  simt<half_format, half_format, true, false, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_bf16_32_nn(const __grid_constant__ gemm g) {
  simt<half_format, half_format, false, true, tile_32>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_bf16_32_nt(const __grid_constant__ gemm g) {
  simt<half_format, half_format, false, false, tile_32>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_bf16_32_tn(const __grid_constant__ gemm g) {
  simt<half_format, half_format, true, true, tile_32>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_bf16_32_tt(const __grid_constant__ gemm g) {
  simt<half_format, half_format, true, false, tile_32>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_mixed_64_nn(const __grid_constant__ gemm g) {
  simt<any_format, any_format, false, true, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_mixed_64_nt(const __grid_constant__ gemm g) {
  simt<any_format, any_format, false, false, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_mixed_64_tn(const __grid_constant__ gemm g) {
  simt<any_format, any_format, true, true, tile_64>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_mixed_64_tt(const __grid_constant__ gemm g) {
  simt<any_format, any_format, true, false, tile_64>(g);
}

}  // namespace isotope::cuda::gpu
