// Fourier transforms of 2^log_r points in 2^log_c columns at once in shared memory: whole rows of at most 4096 points, or one pass over
// the columns of longer rows. Bound by bytes: each pass reads and writes a row once.
//
// Stockham passes of radix 8 (the last one 4 or 2) with 8 points per thread in registers and one buffer: all read, barrier, all write.
// The buffer is permuted so that at most two lanes of the strided writes in early passes meet in a bank. Rows whose length is not a power
// of two are convolved with a chirp (Bluestein), in one block if the convolution has at most 4096 points. In a pass over columns, `s`
// points of the result are already combined: column q + s p has x[q + s (p + m r)], r < R, and makes y[q + s (R p + k)], times
// e^(-2 pi i p k / (R m)).
#include "../fourier/complex.cuh"

namespace isotope::cuda::gpu {

/// COLUMNS: of rows of 2^log_m points; otherwise whole rows.
template <bool COLUMNS> struct fft_block {
  const fft_operands& a;
  float2* const z;
  const int lane, threads;

  __device__ fft_block(const fft_operands& operands)
      : a(operands), z(reinterpret_cast<float2*>(dynamic_shared())), lane(int(threadIdx.x)), threads(int(blockDim.x)) {}

  /// The place of point i of a column.
  __device__ float2& at(int column, int i) const {
    const int p = COLUMNS ? (i << a.log_c) + column : (column << a.log_r) + i;
    return z[p ^ ((p >> 4) & 7) ^ ((p >> 3) & 8)];
  }
  __device__ int points() const { return 1 << (a.log_r + a.log_c); }
  __device__ float2 chirp(int n) const {  // e^(-pi i n^2 / points)
    return factor_of(a.circle, std::uint32_t(std::uint64_t(n) * std::uint64_t(n) % std::uint64_t(2 * a.points)));
  }

  __device__ float2 source(std::int64_t row, int n) const {
    if (a.source == from_chirp) {  // the chirp runs around the circle in both directions
      const int near = n < a.points ? n : (1 << a.log_m) - n;
      const float2 c = near < a.points ? chirp(near) : float2{0.0f, 0.0f};
      return float2{c.x, -c.y};
    }
    if (n >= a.given) return float2{0.0f, 0.0f};
    const std::int64_t from = row * a.in_row;
    if (a.source == from_numbers) return float2{load(a.x, from + n, a.x_type), 0.0f};
    const bool mirrored = a.source == from_bins && 2 * n > a.points;
    const float2 v = load_pair(a.x, from + (mirrored ? a.points - n : n), a.x_type, a.x_aligned);
    if (a.source == from_pairs) return v;
    if (a.source == from_bins) return n == 0 ? float2{a.x_outer * v.x, 0.0f} : times(a.x_inner, float2{v.x, mirrored ? -v.y : v.y});
    const float2 w = load_pair(a.x, from + a.points - n, a.x_type, a.x_aligned);
    return n == 0 ? times(a.x_outer, float2{v.x + w.x, v.x - w.x}) : times(a.x_inner, half_of(v, w, factor_of(a.circle, std::uint32_t(n))));
  }

  /// Point k of a column as the transform leaves it, which is point `place` of the row.
  __device__ float2 result(int column, int k, int place) const {
    const float2 v = at(column, k);
    return swapped(a.chirp_out ? times(float2{v.y, v.x}, chirp(place)) : v, a.swap_out);  // a convolution ends with an inverse transform
  }
  __device__ void target(std::int64_t row, int column, int k, int place) const {
    if (place >= a.kept) return;
    const std::int64_t to = row * a.out_row;
    float2 v = result(column, k, place);
    if (a.target == to_numbers) return store(a.y, to + place, a.y_type, a.y_inner * v.x);
    if (COLUMNS && a.log_s + a.log_r < a.log_m) {  // all but the last pass
      const std::uint32_t p = std::uint32_t(place - (k << a.log_s)) >> (a.log_s + a.log_r);
      v = times(v, factor_of(a.twiddles, (p * std::uint32_t(k)) << a.log_s));
    }
    if (a.target == to_spectrum) v = times(v, pointer<const float2>(a.spectrum)[place]);
    if (a.target == to_half_bins && k == 0) store_pair(a.y, to + a.points, a.y_type, a.y_aligned, float2{a.y_outer * (v.x - v.y), 0.0f});
    if (a.target == to_half_bins && k > 0)
      v = times(a.y_inner, bin_of(v, result(column, a.points - k, a.points - k), factor_of(a.circle, std::uint32_t(k))));
    else if (place == 0 && (a.target == to_half_bins || a.target == to_bins))
      v = float2{a.y_outer * (a.target == to_bins ? v.x : v.x + v.y), 0.0f};
    else v = times(a.y_inner, v);
    store_pair(a.y, to + place, a.y_type, a.y_aligned, v);
  }

  /// One pass of radix 2^LR over every column; 2^ls points of each are already combined.
  template <int LR> __device__ void stage(int ls) const {
    constexpr int radix = 1 << LR, each = 8 >> LR;  // butterflies of a thread
    float2 v[each][radix];
#pragma unroll
    for (int b = 0; b < each; ++b) {
      const int f = lane + threads * b, i = COLUMNS ? f >> a.log_c : f & ((1 << (a.log_r - LR)) - 1);
      const int column = COLUMNS ? f & ((1 << a.log_c) - 1) : f >> (a.log_r - LR);
#pragma unroll
      for (int r = 0; r < radix; ++r) v[b][r] = at(column, i + (r << (a.log_r - LR)));
      dft(v[b]);
    }
    __syncthreads();
#pragma unroll
    for (int b = 0; b < each; ++b) {
      const int f = lane + threads * b, i = COLUMNS ? f >> a.log_c : f & ((1 << (a.log_r - LR)) - 1);
      const int column = COLUMNS ? f & ((1 << a.log_c) - 1) : f >> (a.log_r - LR);
      const int p = i >> ls, to = (p << (ls + LR)) + (i & ((1 << ls) - 1));
#pragma unroll
      for (int k = 0; k < radix; ++k) {
        float2 w = v[b][k];
        if (k > 0 && ls + LR < a.log_r) w = times(w, pointer<const float2>(a.roots)[((p * k) << ls) << (fft_log_most - a.log_r)]);
        at(column, to + (k << ls)) = w;
      }
    }
    __syncthreads();
  }
  __device__ void transform() const {
#pragma unroll 1
    for (int ls = 0; ls + 3 <= a.log_r; ls += 3) stage<3>(ls);
    if (a.log_r % 3 == 2) stage<2>(a.log_r - 2);
    if (a.log_r % 3 == 1) stage<1>(a.log_r - 1);
  }

  __device__ void run() const {
    const std::int64_t g = blockIdx.x;
    const int log_columns = a.log_m - a.log_r;
    const std::int64_t row = COLUMNS ? g >> (log_columns - a.log_c) : g << a.log_c;                // of column 0
    const int first = COLUMNS ? int((g << a.log_c) & ((std::int64_t(1) << log_columns) - 1)) : 0;  // the index of column 0 in its row
    for (int e = lane; e < points(); e += threads) {
      const int column = COLUMNS ? e & ((1 << a.log_c) - 1) : e >> a.log_r, r = COLUMNS ? e >> a.log_c : e & ((1 << a.log_r) - 1);
      const std::int64_t from = COLUMNS ? row : row + column;
      const int n = first + (COLUMNS ? column : 0) + (r << log_columns);
      float2 v{0.0f, 0.0f};
      if (from < a.rows) v = swapped(source(from, n), a.swap_in);
      if (a.chirp_in && n < a.given) v = times(v, chirp(n));
      at(column, r) = v;
    }
    __syncthreads();
    transform();
    if (a.convolve) {
      for (int e = lane; e < points(); e += threads) {
        float2& v = at(e >> a.log_r, e & ((1 << a.log_r) - 1));
        v = swapped(times(v, pointer<const float2>(a.spectrum)[e & ((1 << a.log_r) - 1)]), true);
      }
      __syncthreads();
      transform();
    }
    const bool across = COLUMNS && a.log_s > 0;  // adjacent results are adjacent columns; otherwise they are points of one column
    for (int e = lane; e < points(); e += threads) {
      const int column = across ? e & ((1 << a.log_c) - 1) : e >> a.log_r, k = across ? e >> a.log_c : e & ((1 << a.log_r) - 1);
      const std::int64_t to = COLUMNS ? row : row + column;
      const int place = first + (COLUMNS ? column : 0), q = place & ((1 << a.log_s) - 1), p = place >> a.log_s;
      if (to < a.rows) target(to, column, k, q + (k << a.log_s) + (p << (a.log_s + a.log_r)));
    }
  }
};

extern "C" __global__ void __launch_bounds__(512) fft_rows(const __grid_constant__ fft_operands a) { fft_block<false>(a).run(); }
extern "C" __global__ void __launch_bounds__(512) fft_columns(const __grid_constant__ fft_operands a) { fft_block<true>(a).run(); }

// The bins of real rows from the transforms of their even and odd numbers, where a row takes several blocks. One bin per thread.
extern "C" __global__ void __launch_bounds__(1024) fft_bins(const __grid_constant__ fft_bins_operands a) {
  const std::int64_t i = item(), row = i / (a.h + 1);
  const int k = int(i % (a.h + 1));
  if (row >= a.rows) return;
  const float2* const x = pointer<const float2>(a.x) + row * a.h;
  const float2 v = x[k < a.h ? k : 0];
  float2 bin;
  if (k == 0) bin = float2{a.outer * (v.x + v.y), 0.0f};
  else if (k == a.h) bin = float2{a.outer * (v.x - v.y), 0.0f};
  else bin = times(a.inner, bin_of(v, x[a.h - k], factor_of(a.circle, std::uint32_t(k))));
  store_pair(a.y, i, a.y_type, a.y_aligned, bin);
}

}  // namespace isotope::cuda::gpu
