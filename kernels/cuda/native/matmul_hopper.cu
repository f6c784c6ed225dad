// architectures: 90a
// flags: -fmad=false
// A gemm of bf16 operands in any memory order. One block runs on each multiprocessor and walks over tiles of 128 rows and BN columns: one thread starts tensor
// copies into a ring of stages of 64 along K, two warpgroups multiply 64 rows each (wgmma), and a fourth warpgroup finishes the tile before: sums
// are rounded to bf16 into shared memory, so bias, activation, reads and writes of global memory overlap with the next tile's products. Bound by tensor
// cores where K > 600 or so, by memory below. Two blocks of a cluster share the columns of b, which halves the larger part of the reads from the L2 cache.
#include "matmul_hopper.h"

#include "../device/access.cuh"
#include "../device/formulas.cuh"
#include "../device/hopper.cuh"
#include "../device/wgmma.cuh"

namespace isotope::cuda::gpu {
namespace hopper {

constexpr int BM = 128, BK = 64, line_group = 8192;  // line_group: bytes of 64 lines of 128 bytes
constexpr int max_stages = 8;

/// A part of a work item: the tile of this block and its slabs.
struct part {
  int row, column;  // of the tile's first element
  int first, end;   // slabs
  bool whole;
  int slot;  // of partial sums
};

/// Visits the parts of a block's cluster in order. All warps of all blocks of the cluster visit the same slabs.
class walker {
 public:
  template <int BN> __device__ __forceinline__ static walker of(const matmul_hopper& a) {
    walker w;
    w.clusters_ = int(gridDim.x / unsigned(a.cluster));
    w.index_ = int(blockIdx.x / unsigned(a.cluster));
    w.rank_ = int(blockIdx.x % unsigned(a.cluster));
    const int items = a.row_tiles * a.column_tiles, all = items * a.slabs;
    w.at_ = a.per == 0 ? w.index_ : min(all, w.index_ * a.per);
    w.end_ = a.per == 0 ? items : min(all, w.at_ + a.per);
    w.start_ = w.at_;
    return w;
  }
  template <int BN> __device__ __forceinline__ bool next(const matmul_hopper& a, part& p) {
    if (at_ >= end_) return false;
    int item;
    if (a.per == 0) {
      item = at_;
      p.first = 0;
      p.end = a.slabs;
      p.slot = 0;
      at_ += clusters_;
    } else {
      item = at_ / a.slabs;
      p.first = at_ - item * a.slabs;
      p.end = min(a.slabs, p.first + end_ - at_);
      p.slot = at_ == start_ ? 0 : 1;
      at_ += p.end - p.first;
    }
    p.whole = p.end - p.first == a.slabs;
    place<BN>(a, item, rank_, p.row, p.column);
    return true;
  }
  /// The first element of the tile of block `rank` for a work item.
  template <int BN> __device__ __forceinline__ static void place(const matmul_hopper& a, int item, int rank, int& row, int& column) {
    const int per_group = a.group * a.column_tiles, g = item / per_group, rest = item - g * per_group;
    const int rows = min(a.group, a.row_tiles - g * a.group);
    row = ((g * a.group + rest % rows) * a.cluster + rank) * BM;
    column = rest / rows * BN;
  }

 private:
  int at_, end_, start_, clusters_, index_, rank_;
};

/// Addresses in shared memory: stages with the tiles of a and b, then sums in bf16 for both warpgroups, then barriers.
template <int BN> struct layout {
  static constexpr int a_bytes = BM * BK * 2, b_bytes = BN * BK * 2, stage_bytes = a_bytes + b_bytes;
  static constexpr int sums_bytes = BN / 64 * line_group;  // of one warpgroup
  std::uint32_t stages, sums, barriers;

  __device__ __forceinline__ layout(std::uint32_t shared, const matmul_hopper& a) {
    stages = shared;
    sums = shared + std::uint32_t(a.stages * stage_bytes);
    barriers = sums + (a.direct != 0 ? 0u : 2u * sums_bytes);
  }
  __device__ __forceinline__ std::uint32_t a(int stage) const { return stages + std::uint32_t(stage * stage_bytes); }
  __device__ __forceinline__ std::uint32_t b(int stage) const { return a(stage) + a_bytes; }
  __device__ __forceinline__ std::uint32_t filled(int stage) const { return barriers + std::uint32_t(8 * stage); }
  __device__ __forceinline__ std::uint32_t emptied(int stage) const { return barriers + std::uint32_t(8 * (max_stages + stage)); }
  __device__ __forceinline__ std::uint32_t written(int group) const { return barriers + std::uint32_t(8 * (2 * max_stages + group)); }
  __device__ __forceinline__ std::uint32_t read(int group) const { return barriers + std::uint32_t(8 * (2 * max_stages + 2 + group)); }
};

/// A position in the ring of stages.
struct ring {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Copies the tiles of all slabs into the ring. In a cluster each block copies half of b for both.
template <int BN, bool CrossA, bool CrossB> __device__ __forceinline__ void produce(const matmul_hopper& a, const layout<BN>& l) {
  walker w = walker::of<BN>(a);
  part p;
  ring r;
  const int rank = int(blockIdx.x % unsigned(a.cluster));
  tensor_prefetch(a.a);
  tensor_prefetch(a.b);
  while (w.next<BN>(a, p)) {
    for (int slab = p.first; slab < p.end; ++slab) {
      barrier_wait(l.emptied(r.stage), r.parity ^ 1);
      const std::uint32_t filled = l.filled(r.stage), to_a = l.a(r.stage), to_b = l.b(r.stage);
      barrier_expect(filled, layout<BN>::stage_bytes);
      const int k = slab * BK;
      if constexpr (CrossA) {
        tensor_load(to_a, a.a, p.row, k, filled);
        tensor_load(to_a + line_group, a.a, p.row + 64, k, filled);
      } else {
        tensor_load(to_a, a.a, k, p.row, filled);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (a.cluster == 2 && half != rank) continue;
        constexpr int boxes = CrossB ? BN / 64 : 1;
#pragma unroll
        for (int i = 0; i < boxes; ++i) {
          const std::uint32_t to = to_b + std::uint32_t(CrossB ? i * line_group + half * line_group / 2 : half * BN / 2 * 128);
          const int x = CrossB ? p.column + 64 * i : k, y = CrossB ? k + 32 * half : p.column + half * BN / 2;
          if (a.cluster == 2) tensor_load_all(to, a.b, x, y, filled, 3);
          else tensor_load(to, a.b, x, y, filled);
        }
      }
      r.advance(a.stages);
    }
  }
}

/// Writes sums d of a warpgroup whose thread has row `row` and column `column` of y, in f32, first.
template <int Width, bool Accumulate> __device__ __forceinline__ void write_sums(const matmul_hopper& a, const float (&d)[Width / 2], int row, int column) {
  constexpr int batch = 4;  // column pairs of two rows that are read at once
  const bool inside[2] = {row < a.M, row + 8 < a.M};
  float2* const line[2] = {pointer<float2>(a.y + 4 * (std::uint64_t(row) * std::uint64_t(a.N) + std::uint64_t(column))),
                           pointer<float2>(a.y + 4 * (std::uint64_t(row + 8) * std::uint64_t(a.N) + std::uint64_t(column)))};
#pragma unroll
  for (int first = 0; first < Width / 8; first += batch) {
    float2 old[2 * batch];
    if constexpr (Accumulate) {
#pragma unroll
      for (int i = 0; i < 2 * batch; ++i)
        if (inside[i % 2] && column + 8 * (first + i / 2) < a.N) old[i] = line[i % 2][4 * (first + i / 2)];
    }
#pragma unroll
    for (int i = 0; i < 2 * batch; ++i) {
      const int at = 4 * (first + i / 2) + i % 2 * 2;
      float2 x = {__fmul_rn(a.alpha, d[at]), __fmul_rn(a.alpha, d[at + 1])};
      if constexpr (Accumulate) x = {__fadd_rn(old[i].x, x.x), __fadd_rn(old[i].y, x.y)};
      if (inside[i % 2] && column + 8 * (first + i / 2) < a.N) line[i % 2][4 * (first + i / 2)] = x;
    }
  }
}
/// The partial sums of a block's slot, in the order of registers: quad i of thread t of warpgroup g is element (g BN / 8 + i) 128 + t.
template <int BN> __device__ __forceinline__ float4* slot_of(const matmul_hopper& a, std::int64_t block, int slot) {
  return pointer<float4>(a.partial) + (2 * block + slot) * (BM * BN / 4);
}

/// Multiplies rows 64 group to 64 group + 63 of each tile, `Width` columns with an instruction.
template <int BN, int Width, bool CrossA, bool CrossB>
__device__ __forceinline__ void multiply(const matmul_hopper& a, const layout<BN>& l, int group) {
  constexpr std::uint32_t step_a = CrossA ? 128 : 2, step_b = CrossB ? 128 : 2;  // 16 further along K, in units of 16 bytes
  constexpr std::uint32_t next_b = Width / 64 * line_group / 16;
  constexpr int quads = Width / 8;  // four sums each, of an instruction
  const int t = int(threadIdx.x % 128), lane = t % 32, warp = t / 32;
  walker w = walker::of<BN>(a);
  part p;
  ring r;
  std::uint32_t parity = 0;  // of the sums in shared memory
  float d[BN / Width][Width / 2];
  while (w.next<BN>(a, p)) {
    int before = 0;
    for (int slab = p.first; slab < p.end; ++slab) {
      barrier_wait(l.filled(r.stage), r.parity);
      const std::uint64_t from_a = matrix_descriptor<CrossA>(l.a(r.stage) + std::uint32_t(group * line_group), line_group);
      const std::uint64_t from_b = matrix_descriptor<CrossB>(l.b(r.stage), line_group);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BK / 16; ++k) {
#pragma unroll
        for (int i = 0; i < BN / Width; ++i)
          wgmma_bf16<CrossA, CrossB>(d[i], from_a + k * step_a, from_b + i * next_b + k * step_b, slab != p.first || k != 0);
      }
      wgmma_commit();
      if (slab != p.first) {
        wgmma_wait<1>();
        if (lane < a.cluster) barrier_arrive(l.emptied(before), std::uint32_t(lane));
      }
      before = r.stage;
      r.advance(a.stages);
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < BN / Width; ++i) hold(d[i]);
    if (lane < a.cluster) barrier_arrive(l.emptied(before), std::uint32_t(lane));
    if (!p.whole) {
      float4* to = slot_of<BN>(a, blockIdx.x, p.slot) + group * (BN / 8) * 128 + t;
#pragma unroll
      for (int i = 0; i < BN / 8; ++i) {
        const float* x = &d[i / quads][i % quads * 4];
        to[i * 128] = make_float4(x[0], x[1], x[2], x[3]);
      }
    } else if (a.direct != 0) {
#pragma unroll
      for (int i = 0; i < BN / Width; ++i) {
        const int row = p.row + 64 * group + 16 * warp + lane / 4, column = p.column + i * Width + lane % 4 * 2;
        if (a.accumulate != 0) write_sums<Width, true>(a, d[i], row, column);
        else write_sums<Width, false>(a, d[i], row, column);
      }
    } else {
      if (a.alpha != 1.0f)
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) d[i / (Width / 2)][i % (Width / 2)] = __fmul_rn(a.alpha, d[i / (Width / 2)][i % (Width / 2)]);
      barrier_wait(l.read(group), parity ^ 1);
      parity ^= 1;
      const int row = 16 * warp + lane % 16;
      const std::uint32_t to = l.sums + std::uint32_t(group * layout<BN>::sums_bytes + row * 128);
#pragma unroll
      for (int i = 0; i < BN / 8; i += 2) {
        const std::uint32_t piece = std::uint32_t(i % 8 + lane / 16) ^ std::uint32_t(row % 8);
        const float* x = &d[i / quads][i % quads * 4];
        store_matrix_x4(to + std::uint32_t(i / 8 * line_group) + piece * 16, bf16_pair(x[0], x[1]), bf16_pair(x[2], x[3]),
                        bf16_pair(x[4], x[5]), bf16_pair(x[6], x[7]));
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(l.written(group));
    }
  }
}

__device__ __forceinline__ float low(std::uint32_t u) { return __uint_as_float(u << 16); }
__device__ __forceinline__ float high(std::uint32_t u) { return __uint_as_float(u & 0xffff0000u); }
__device__ __forceinline__ std::uint32_t add_pairs(std::uint32_t x, std::uint32_t y) {
  return bf16_pair(__fadd_rn(low(x), low(y)), __fadd_rn(high(x), high(y)));
}
__device__ __forceinline__ std::uint32_t gelu_pair(std::uint32_t x) {
  return bf16_pair(formulas::gelu_tanh_short(low(x)).value, formulas::gelu_tanh_short(high(x)).value);
}
/// The products x times the derivative of gelu at `at`.
__device__ __forceinline__ std::uint32_t gelu_grad_pair(std::uint32_t x, std::uint32_t at) {
  return bf16_pair(__fmul_rn(low(x), formulas::gelu_tanh_derivative_short(low(at)).value),
                   __fmul_rn(high(x), formulas::gelu_tanh_derivative_short(high(at)).value));
}
template <class F> __device__ __forceinline__ uint4 each_pair(F f, uint4 x) { return {f(x.x), f(x.y), f(x.z), f(x.w)}; }
template <class F> __device__ __forceinline__ uint4 each_pair(F f, uint4 x, uint4 y) {
  return {f(x.x, y.x), f(x.y, y.y), f(x.z, y.z), f(x.w, y.w)};
}

/// Finishes the tiles whose sums are in shared memory, as warp `warp` of `Warps`. A lane has 8 adjacent columns.
template <int BN, int Warps, hopper_epilogue E> __device__ __forceinline__ void finish(const matmul_hopper& a, const layout<BN>& l, int warp) {
  constexpr bool has_bias = E == hopper_epilogue::bias || E == hopper_epilogue::bias_gelu || E == hopper_epilogue::bias_residual;
  constexpr bool has_other = E == hopper_epilogue::add || E == hopper_epilogue::bias_residual || E == hopper_epilogue::gelu_grad;
  constexpr int lanes = BN / 8, rows = 32 / lanes, stride = rows * Warps;  // lanes of a row, rows of a warp and of all warps
  constexpr int batch = 8, steps = (64 + stride - 1) / stride;                // rows of a lane that are read at once, and in all
  const int lane = int(threadIdx.x % 32), piece = lane % lanes, row0 = warp * rows + lane / lanes;
  walker w = walker::of<BN>(a);
  part p;
  std::uint32_t parity = 0;
  while (w.next<BN>(a, p)) {
    if (!p.whole) continue;
    const int n = p.column + 8 * piece;
    const bool inside = n < a.N && lane < lanes * rows;
    uint4 bias{};
    if (has_bias && inside) bias = *pointer<const uint4>(a.bias + 2 * std::uint64_t(n));
    for (int group = 0; group < 2; ++group) {
      const int top = p.row + 64 * group;
      const std::uint32_t sums = l.sums + std::uint32_t(group * layout<BN>::sums_bytes + piece / 8 * line_group);
      for (int first = 0; first < steps; first += batch) {
        uint4 other[has_other ? batch : 1];
        if constexpr (has_other) {
#pragma unroll
          for (int i = 0; i < batch; ++i) {
            const int row = row0 + (first + i) * stride, m = top + row;
            if (inside && row < 64 && m < a.M) other[i] = *pointer<const uint4>(a.other + 2 * (std::uint64_t(m) * std::uint64_t(a.N) + std::uint64_t(n)));
          }
        }
        if (first == 0) barrier_wait(l.written(group), parity);
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const int row = row0 + (first + i) * stride, m = top + row;
          if (!inside || row >= 64 || m >= a.M) continue;
          uint4 x = load_shared_16(sums + std::uint32_t(row * 128 + ((piece % 8) ^ (row % 8)) * 16));
          const std::uint64_t at = 2 * (std::uint64_t(m) * std::uint64_t(a.N) + std::uint64_t(n));
          if constexpr (has_bias) x = each_pair(add_pairs, x, bias);
          if constexpr (E == hopper_epilogue::bias_gelu) {
            if (a.before != 0) *pointer<uint4>(a.before + at) = x;
            x = each_pair(gelu_pair, x);
          }
          if constexpr (E == hopper_epilogue::bias_residual) x = each_pair(add_pairs, x, other[i]);
          if constexpr (E == hopper_epilogue::add) x = each_pair(add_pairs, other[i], x);
          if constexpr (E == hopper_epilogue::gelu_grad) x = each_pair(gelu_grad_pair, x, other[i]);
          *pointer<uint4>(a.y + at) = x;
        }
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(l.read(group));
    }
    parity ^= 1;
  }
}
template <int BN, int Warps> __device__ __forceinline__ void finish(const matmul_hopper& a, const layout<BN>& l, int warp) {
  switch (a.epilogue) {
    case hopper_epilogue::plain: return finish<BN, Warps, hopper_epilogue::plain>(a, l, warp);
    case hopper_epilogue::add: return finish<BN, Warps, hopper_epilogue::add>(a, l, warp);
    case hopper_epilogue::bias: return finish<BN, Warps, hopper_epilogue::bias>(a, l, warp);
    case hopper_epilogue::bias_gelu: return finish<BN, Warps, hopper_epilogue::bias_gelu>(a, l, warp);
    case hopper_epilogue::bias_residual: return finish<BN, Warps, hopper_epilogue::bias_residual>(a, l, warp);
    case hopper_epilogue::gelu_grad: return finish<BN, Warps, hopper_epilogue::gelu_grad>(a, l, warp);
  }
}

/// `Warps` warps finish tiles. Four of them and the copying warp belong to two warpgroups of the four; three share its warpgroup, so that a thread can have 168
/// registers from the start: the compiler insists on that for an instruction that multiplies 256 columns.
template <int BN, int Width, int Warps, bool CrossA, bool CrossB> __device__ __forceinline__ void run(const matmul_hopper& a) {
  const layout<BN> l(shared_address(dynamic_shared()), a);
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.stages; ++i) {
      barrier_init(l.filled(i), 1);
      barrier_init(l.emptied(i), std::uint32_t(8 * a.cluster));  // the multiplying warps of the cluster
    }
    for (int i = 0; i < 2; ++i) {
      barrier_init(l.written(i), 4);
      barrier_init(l.read(i), Warps);
    }
    barrier_init_fence();
  }
  __syncthreads();
  cluster_sync();
  const int warpgroup = int(threadIdx.x / 128), warp = int(threadIdx.x / 32);
  constexpr int multiplying = Warps == 4 ? 2 : 1;  // the first warpgroup that multiplies
  if (warpgroup >= multiplying) {
    take_registers<Warps == 4 ? 192 : 200>();
    multiply<BN, Width, CrossA, CrossB>(a, l, warpgroup - multiplying);
  } else if (Warps == 4 && warpgroup == 0) {
    give_registers<24>();
    if (threadIdx.x == 0) produce<BN, CrossA, CrossB>(a, l);
  } else {
    give_registers<104>();
    if (warp == 0) {
      if (threadIdx.x == 0) produce<BN, CrossA, CrossB>(a, l);
    } else if (a.direct == 0) {
      finish<BN, Warps>(a, l, Warps == 4 ? warp - 4 : warp - 1);
    }
  }
  __syncwarp();
  cluster_sync();  // a block's shared memory must live until the other has stopped writing to it
}

/// Adds the partial sums of divided work items in the order of K. Block x has a tile's half of 64 rows, block y the quads of registers.
template <int BN> __device__ __forceinline__ void reduce(const matmul_hopper& a) {
  const int group = int(blockIdx.x % 2), rank = int(blockIdx.x / 2) % a.cluster, item = int(blockIdx.x / 2) / a.cluster;
  const int t = int(threadIdx.x), quad = int(blockIdx.y);
  const int start = item * a.slabs, first = start / a.per, last = (start + a.slabs - 1) / a.per;
  if (first == last) return;  // the work item was whole
  float4 sum{};
#pragma unroll 4
  for (int c = first; c <= last; ++c) {
    const int slot = c * a.per >= start ? 0 : 1;
    const float4 x = slot_of<BN>(a, std::int64_t(c) * a.cluster + rank, slot)[(group * (BN / 8) + quad) * 128 + t];
    sum = make_float4(__fadd_rn(sum.x, x.x), __fadd_rn(sum.y, x.y), __fadd_rn(sum.z, x.z), __fadd_rn(sum.w, x.w));
  }
  int row, column;
  walker::place<BN>(a, item, rank, row, column);
  const int lane = t % 32, n = column + 8 * quad + lane % 4 * 2;
  row += 64 * group + 16 * (t / 32) + lane / 4;
  if (n >= a.N) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int m = row + 8 * i;
    if (m >= a.M) continue;
    float2 x = {__fmul_rn(a.alpha, i == 0 ? sum.x : sum.z), __fmul_rn(a.alpha, i == 0 ? sum.y : sum.w)};
    const std::uint64_t at = std::uint64_t(m) * std::uint64_t(a.N) + std::uint64_t(n);
    if (a.direct != 0) {
      float2& y = *pointer<float2>(a.y + 4 * at);
      if (a.accumulate != 0) x = {__fadd_rn(y.x, x.x), __fadd_rn(y.y, x.y)};
      y = x;
    } else {
      std::uint32_t& y = *pointer<std::uint32_t>(a.y + 2 * at);
      const std::uint32_t product = bf16_pair(x.x, x.y);
      y = a.accumulate != 0 ? add_pairs(y, product) : product;
    }
  }
}

}  // namespace hopper

// Memory order of the operands: n, lines along K; t, lines along M or N. The name has a's letter as if lines were rows of a, and b's as if they were its columns:
// nt is a (M, K) times b (N, K) transposed, nn a (M, K) times b (K, N), tn a (K, M) transposed times b (K, N).
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_nt_256(const __grid_constant__ matmul_hopper a) { hopper::run<256, 256, 3, false, false>(a); }
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_nn_256(const __grid_constant__ matmul_hopper a) { hopper::run<256, 256, 3, false, true>(a); }
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_tn_256(const __grid_constant__ matmul_hopper a) { hopper::run<256, 256, 3, true, true>(a); }
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nt_192(const __grid_constant__ matmul_hopper a) { hopper::run<192, 192, 4, false, false>(a); }
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nn_192(const __grid_constant__ matmul_hopper a) { hopper::run<192, 192, 4, false, true>(a); }
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_tn_192(const __grid_constant__ matmul_hopper a) { hopper::run<192, 192, 4, true, true>(a); }
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nt_128(const __grid_constant__ matmul_hopper a) { hopper::run<128, 128, 4, false, false>(a); }
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nn_128(const __grid_constant__ matmul_hopper a) { hopper::run<128, 128, 4, false, true>(a); }
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_tn_128(const __grid_constant__ matmul_hopper a) { hopper::run<128, 128, 4, true, true>(a); }
#if defined(ISOTOPE_TRIAL)
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nt_256w(const __grid_constant__ matmul_hopper a) { hopper::run<256, 128, 4, false, false>(a); }
#endif
extern "C" __global__ void __launch_bounds__(128) matmul_hopper_reduce_256(const __grid_constant__ matmul_hopper a) { hopper::reduce<256>(a); }
extern "C" __global__ void __launch_bounds__(128) matmul_hopper_reduce_192(const __grid_constant__ matmul_hopper a) { hopper::reduce<192>(a); }
extern "C" __global__ void __launch_bounds__(128) matmul_hopper_reduce_128(const __grid_constant__ matmul_hopper a) { hopper::reduce<128>(a); }

}  // namespace isotope::cuda::gpu
