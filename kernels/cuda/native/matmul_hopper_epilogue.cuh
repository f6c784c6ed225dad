#pragma once
// What matmul_hopper.cu does with finished sums. A fused result has the bits of separate steps: each value is rounded to bf16 before it
// is used.
#include <type_traits>

#include "../device/formulas.cuh"
#include "matmul_hopper_columns.cuh"

namespace isotope::cuda::gpu::hopper {

/// Writes sums d of a warpgroup whose thread has row `row` and column `column` of y, in f32, first.
template <int BN, bool Accumulate>
__device__ __forceinline__ void write_sums(const matmul_hopper& a, const float (&d)[BN / 2], int row, int column) {
  constexpr int batch = 4;  // column pairs of two rows that are read at once
  const bool inside[2] = {row < a.M, row + 8 < a.M};
  float2* const line[2] = {pointer<float2>(a.y + 4 * (std::uint64_t(row) * std::uint64_t(a.N) + std::uint64_t(column))),
                           pointer<float2>(a.y + 4 * (std::uint64_t(row + 8) * std::uint64_t(a.N) + std::uint64_t(column)))};
#pragma unroll
  for (int first = 0; first < BN / 8; first += batch) {
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
__device__ __forceinline__ float low(std::uint32_t u) { return __uint_as_float(u << 16); }
__device__ __forceinline__ float high(std::uint32_t u) { return __uint_as_float(u & 0xffff0000u); }
/// The sums of two pairs, rounded once. A sum in f32 that is rounded to bf16 has the same bits: it is exact unless one operand is less than
/// 2^-16 of the other, and then both round to the larger one.
__device__ __forceinline__ std::uint32_t add_pairs(std::uint32_t x, std::uint32_t y) {
#if defined(ISOTOPE_EMULATED_DEVICE)
  return bf16_pair(low(x) + low(y), high(x) + high(y));
#else
  std::uint32_t sum;
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(y));
  return sum;
#endif
}
__device__ __forceinline__ std::uint32_t pair_at_least(std::uint32_t x, std::uint32_t bound) {
#if defined(ISOTOPE_EMULATED_DEVICE)
  const auto larger = [](float a, float b) { return a != a || b != b ? __uint_as_float(0x7fffffffu) : a > b ? a : b; };
  return bf16_pair(larger(low(x), low(bound)), larger(high(x), high(bound)));
#else
  std::uint32_t y;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(bound));
  return y;
#endif
}
/// Limits the magnitudes of a pair; bounds are positive.
__device__ __forceinline__ std::uint32_t pair_within(std::uint32_t x, std::uint32_t bound) {
#if defined(ISOTOPE_EMULATED_DEVICE)
  const auto smaller = [](float a, float b) { return a != a ? __uint_as_float(0x7fffffffu) : fabsf(a) < b ? a : copysignf(b, a); };
  return bf16_pair(smaller(low(x), low(bound)), smaller(high(x), high(bound)));
#else
  std::uint32_t y;
  asm("min.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(bound));
  return y;
#endif
}

// formulas::gelu_tanh_short and gelu_tanh_derivative_short for operands in bf16, with the same bits in fewer instructions: both operands of
// a pair are limited by one instruction, which keeps NaN, and factors that are powers of two are placed where nothing overflows.
constexpr std::uint32_t pair_of_11 = 0x41304130u, pair_of_minus_11 = 0xc130c130u;
__device__ __forceinline__ float gelu_of(float x) {  // x >= -11
  const formulas::number v = x;
  const formulas::number gate = formulas::inverse(5.42101086e-20f + formulas::gelu_tanh_odds(v)) * 8.67361738e-19f;  // 16 times the gate
  return (v * 0.0625f * gate).value;
}
__device__ __forceinline__ std::uint32_t gelu_pair(std::uint32_t x) {
  const std::uint32_t v = pair_at_least(x, pair_of_minus_11);
  return bf16_pair(gelu_of(low(v)), gelu_of(high(v)));
}
/// formulas::gelu_erf_short, likewise: `a` is the limited magnitude, `above` x or zero.
__device__ __forceinline__ float gelu_erf_of(float a, float above) {
  const formulas::number v = a, r = formulas::inverse(formulas::fma(0.3f, v, 1.0f));
  formulas::number c = formulas::fma(r, -0.0775073662f, 0.217269421f);
  c = formulas::fma(r, c, -0.0183562562f);
  c = formulas::fma(r, c, 0.144955397f);
  c = formulas::fma(r, c, 0.113550335f);
  c = formulas::fma(r, c, 0.120092243f);
  return formulas::fma(-(v * r * c), formulas::exp2(v * v * -0.721347520f), above).value;
}
constexpr std::uint32_t pair_of_13_5 = 0x41584158u;
__device__ __forceinline__ std::uint32_t gelu_erf_pair(std::uint32_t x) {
  const std::uint32_t a = pair_within(x & 0x7fff7fffu, pair_of_13_5), above = pair_at_least(x, 0u);
  return bf16_pair(gelu_erf_of(low(a), low(above)), gelu_erf_of(high(a), high(above)));
}
template <class F> __device__ __forceinline__ uint4 each_pair(F f, uint4 x) { return {f(x.x), f(x.y), f(x.z), f(x.w)}; }
template <class F> __device__ __forceinline__ uint4 each_pair(F f, uint4 x, uint4 y) {
  return {f(x.x, y.x), f(x.y, y.y), f(x.z, y.z), f(x.w, y.w)};
}

__device__ __forceinline__ void unpack_eight(uint4 x, formulas::number (&v)[8]) {
  const std::uint32_t w[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = k % 2 == 0 ? low(w[k / 2]) : high(w[k / 2]);
}
__device__ __forceinline__ uint4 pack_eight(const formulas::number (&v)[8]) {
  return {bf16_pair(v[0].value, v[1].value), bf16_pair(v[2].value, v[3].value), bf16_pair(v[4].value, v[5].value),
          bf16_pair(v[6].value, v[7].value)};
}
/// The products x times the derivative of gelu at `at`. All elements go through each step together: where one is finished before the next
/// begins, the compiler leaves them in this order, and each waits for its slow instructions.
__device__ __forceinline__ uint4 gelu_grad_eight(uint4 x, uint4 at) {
  formulas::number v[8], e[8], y[8];
  unpack_eight(each_pair([](std::uint32_t w) { return pair_within(w, pair_of_11); }, at), v);
#pragma unroll
  for (int k = 0; k < 8; ++k) e[k] = formulas::gelu_tanh_odds(v[k]);
#pragma unroll
  for (int k = 0; k < 8; ++k) y[k] = formulas::inverse(5.42101086e-20f + e[k]);
#pragma unroll
  for (int k = 0; k < 8; ++k)
    e[k] = 5.42101086e-20f * y[k] * formulas::fma(v[k] * formulas::fma(v[k] * v[k], 0.214063906f, 1.59576912f), e[k] * y[k], 1.0f);
  unpack_eight(x, v);
#pragma unroll
  for (int k = 0; k < 8; ++k) y[k] = v[k] * e[k];
  return pack_eight(y);
}

/// Finishes the tiles whose sums are in shared memory, as warp `warp` of `Warps`. A lane has 8 adjacent columns, and all rows of a batch
/// are read before the first is written. `Summed`: what is written is summed along columns.
template <int BN, int Warps, hopper_epilogue E, bool Summed = false>
__device__ __forceinline__ void finish(const matmul_hopper& a, const layout<BN>& l, int warp) {
  constexpr bool has_gelu = E == hopper_epilogue::bias_gelu || E == hopper_epilogue::bias_gelu_erf;
  constexpr bool has_bias = E == hopper_epilogue::bias || has_gelu || E == hopper_epilogue::bias_residual;
  constexpr bool has_other = E == hopper_epilogue::add || E == hopper_epilogue::bias_residual || E == hopper_epilogue::gelu_grad;
  constexpr int lanes = BN / 8, rows = 32 / lanes, stride = rows * Warps;  // lanes of a row, rows of a warp and of all warps at once
  // Steps over 64 rows, the last ones partly behind them if there are operands to read: few long batches of reads hide their latency.
  constexpr int steps = has_other ? (64 + stride - 1) / stride : 64 / stride;
  constexpr int batch = has_other                             ? (steps > 5 ? steps / 2 : steps)
                        : steps % 7 == 0                      ? 7
                        : steps % 3 == 0                      ? 3
                        : E == hopper_epilogue::bias_gelu_erf ? 2  // its formula takes more registers
                                                              : 4;
  static_assert(steps % batch == 0);
  const int lane = int(threadIdx.x % 32), piece = lane % lanes;
  const bool idle = lane >= lanes * rows;
  const int row0 = warp * rows + (idle ? 0 : lane / lanes);
  const std::uint64_t pitch = 2 * std::uint64_t(stride) * std::uint64_t(a.N);
  walker w(a);
  part p;
  std::uint32_t parity = 0;
  column_sums<BN, Warps> columns;
  while (w.next<BN>(a, p)) {
    if constexpr (Summed) columns.clear();
    const int n = p.column + 8 * piece;
    const bool inside = n < a.N && !idle;
    uint4 bias{};
    if (has_bias && inside) bias = *pointer<const uint4>(a.bias + 2 * std::uint64_t(n));
    if constexpr (has_other) {
      for (int row = warp * 32 + lane; row < BM; row += Warps * 32)
        if (p.row + row < a.M)
          prefetch_l2(a.other + 2 * (std::uint64_t(p.row + row) * std::uint64_t(a.N) + std::uint64_t(p.column)),
                      std::uint32_t(2 * min(BN, a.N - p.column)));
    }
    for (int group = 0; group < 2; ++group) {
      const int top = p.row + 64 * group + row0,
                last = inside ? min(a.M - top, 64 - row0) : 0;  // a row exists if its distance from `top` is less than `last`
      const std::uint64_t start = 2 * (std::uint64_t(top) * std::uint64_t(a.N) + std::uint64_t(n));
      const std::uint32_t sums = l.sums_of(group) + std::uint32_t(piece / 8 * line_group);
      const auto finish_rows = [&]<int Count>(std::integral_constant<int, Count>, int first) {
        const std::uint64_t at = start + std::uint64_t(first) * pitch;
        constexpr int others = has_other ? Count : 1;
        uint4 other[others];
        if constexpr (has_other) {
#pragma unroll
          for (int i = 0; i < Count; ++i) other[i] = load_global_16(a.other + at + std::uint64_t(i) * pitch, (first + i) * stride < last);
        }
        if (first == 0) barrier_wait(l.written(group), parity);
        const auto sums_at = [&](int i) {
          const int row = min(row0 + (first + i) * stride, 63);
          return load_shared_16(sums + std::uint32_t(row * 128 + ((piece % 8) ^ (row % 8)) * 16));
        };
        if constexpr (has_other) {
#pragma unroll
          for (int i = 0; i < Count; ++i) {
            uint4 y = sums_at(i);
            if constexpr (has_bias) y = each_pair(add_pairs, y, bias);
            if constexpr (E == hopper_epilogue::gelu_grad) y = gelu_grad_eight(y, other[i]);
            else y = each_pair(add_pairs, other[i], y);
            if constexpr (Summed) {
              if ((first + i) * stride < last) columns.add(y);
            }
            store_global_16(a.y + at + std::uint64_t(i) * pitch, y, (first + i) * stride < last);
          }
        } else {
          uint4 x[Count];
#pragma unroll
          for (int i = 0; i < Count; ++i) {
            x[i] = sums_at(i);
            if constexpr (has_bias) x[i] = each_pair(add_pairs, x[i], bias);
          }
          if constexpr (has_gelu) {
            if (a.before != 0) {
#pragma unroll
              for (int i = 0; i < Count; ++i) store_global_16(a.before + at + std::uint64_t(i) * pitch, x[i], (first + i) * stride < last);
            }
          }
#pragma unroll
          for (int i = 0; i < Count; ++i) {
            if constexpr (E == hopper_epilogue::bias_gelu) x[i] = each_pair(gelu_pair, x[i]);
            if constexpr (E == hopper_epilogue::bias_gelu_erf) x[i] = each_pair(gelu_erf_pair, x[i]);
            store_global_16(a.y + at + std::uint64_t(i) * pitch, x[i], (first + i) * stride < last);
          }
        }
      };
#pragma unroll 1
      for (int first = 0; first < steps; first += batch) finish_rows(std::integral_constant<int, batch>{}, first);
      if (!has_other && 64 % stride != 0 && row0 + steps * stride < 64) finish_rows(std::integral_constant<int, 1>{}, steps);
      __syncwarp();
      if (lane == 0) barrier_arrive(l.read(group));
    }
    if constexpr (Summed) columns.write(a, l.column_sums(), p, warp, parity);
    parity ^= 1;
  }
}
template <int BN, int Warps> __device__ __forceinline__ void finish(const matmul_hopper& a, const layout<BN>& l, int warp) {
  switch (a.epilogue) {
    case hopper_epilogue::plain: return finish<BN, Warps, hopper_epilogue::plain>(a, l, warp);
    case hopper_epilogue::add: return finish<BN, Warps, hopper_epilogue::add>(a, l, warp);
    case hopper_epilogue::bias: return finish<BN, Warps, hopper_epilogue::bias>(a, l, warp);
    case hopper_epilogue::bias_gelu: return finish<BN, Warps, hopper_epilogue::bias_gelu>(a, l, warp);
    case hopper_epilogue::bias_gelu_erf: return finish<BN, Warps, hopper_epilogue::bias_gelu_erf>(a, l, warp);
    case hopper_epilogue::bias_residual: return finish<BN, Warps, hopper_epilogue::bias_residual>(a, l, warp);
    case hopper_epilogue::gelu_grad:
      if constexpr (BN == 128) {
        if (a.column_sums != 0) return finish<BN, Warps, hopper_epilogue::gelu_grad, true>(a, l, warp);
      }
      return finish<BN, Warps, hopper_epilogue::gelu_grad>(a, l, warp);
  }
}

/// Adds the partial sums of divided work items in the order of K. Block x has a tile's half of 64 rows, block y the quads of registers.
template <int BN> __device__ __forceinline__ void reduce(const matmul_hopper& a) {
  const int group = int(blockIdx.x % 2), rank = int(blockIdx.x / 2) % a.cluster, item = int(blockIdx.x / 2) / a.cluster;
  const int t = int(threadIdx.x), quad = int(blockIdx.y);
  const int items = a.row_tiles * a.column_tiles;
  float4 sum{};
#pragma unroll 4
  for (int k = 0; k < a.parts; ++k) {
    const float4 x = partial_sums<BN>(a, std::int64_t(k * items + item) * a.cluster + rank)[(group * (BN / 8) + quad) * 128 + t];
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

}  // namespace isotope::cuda::gpu::hopper
