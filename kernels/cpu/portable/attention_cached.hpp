#pragma once
/// Attention over cached keys and values, a head of a query at a time. For few queries it is bound by reading the caches. A dot product keeps one vector of
/// partial sums, which are then added in pairs; values are added four at a time, so that the result is loaded and stored once per four. The order of all sums
/// depends on the positions alone, so a token has the same bits alone, among others and in any slot.
#include <cmath>
#include <limits>

#include <isotope/kernels/cpu/body/block_access.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/weight.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>
#include <isotope/op/attention_cached.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

class attention_cached {
 public:
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const shape& cache = s.in[1];
    return 4 * slice_floats(cache[2], cache[3]) * smaller(s.in[0][0] * s.constants<op::attention_cached>().heads, max_workers);
  }
  static void run(const launch& l) {
    const auto c = l.constants<op::attention_cached>();
    const op::cache_sizes size(l.in[1].dims);
    const std::int64_t rows = l.in[0].dims[0];
    const auto *sequence = l.in[3].as<const std::int32_t>(), *position = l.in[4].as<const std::int32_t>();
    double pairs = 0;
    for (std::int64_t n = 0; n < rows; ++n)
      if (size.has(sequence[n], position[n])) pairs += double(position[n] + 1 - c.first(position[n]));
    const double nsec = double(c.heads) * (pairs * (double(size.D) / 12.0 + 5.0) + 50.0 * double(rows));
    for_uneven_tasks(l, rows * c.heads, nsec, [&](std::int64_t task, int slice) {
      const std::int64_t n = task / c.heads, h = task % c.heads;
      float* const own = static_cast<float*>(l.scratch) + slice * slice_floats(size.T, size.D);
      float* const y = own + size.T;  // (D)
      if (size.has(sequence[n], position[n])) {
        query(l, c, size, n, h, sequence[n], c.first(position[n]), position[n] + 1, own);
      } else {
        std::memset(y, 0, std::size_t(size.D) * 4);
      }
      narrow_run(y, l.out[0].data, l.out[0].type, n * l.out[0].strides[0] + h * size.D, size.D);
    });
  }

 private:
  static constexpr std::int64_t parts = 16;  // partial sums of a dot product
  static constexpr std::int64_t few = 4;     // rows of values that are added at a time
  /// Scores, the result, the query, and rows of a cache that is not in f32.
  static constexpr std::int64_t slice_floats(std::int64_t T, std::int64_t D) { return (T + (2 + few) * D + 15) / 16 * 16; }

  /// Keys first to end - 1 of a slot. `own`: scores (T), then the result (D), the query (D) and `few` rows (D).
  static void query(const launch& l, const op::attention_cached::constants& c, const op::cache_sizes& size, std::int64_t n, std::int64_t h,
                    std::int64_t slot, std::int64_t first, std::int64_t end, float* own) {
    const std::int64_t D = size.D, g = h / (c.heads / size.G), count = end - first;
    float *const p = own, *const y = own + size.T, *const q = y + D, *const room = q + D;
    const view &keys = l.in[1], &values = l.in[2];
    const auto place = [&](const view& cache, std::int64_t t) {
      return slot * cache.strides[0] + g * cache.strides[1] + t * cache.strides[2];
    };
    const auto row = [&](const view& cache, std::int64_t t, float* buffer) -> const float* {
      if (cache.type == dtype::f32) return cache.as<const float>() + place(cache, t);
      widen_run(cache.data, cache.type, place(cache, t), 1, buffer, D);
      return buffer;
    };
    widen_run(l.in[0].data, l.in[0].type, n * l.in[0].strides[0] + h * D, 1, q, D);
    const float scale = float(c.scale);
    float top = -std::numeric_limits<float>::infinity();
    for (std::int64_t t = 0; t < count; ++t) {
      p[t] = scale * dot(q, row(keys, first + t, room), D);
      top = p[t] > top ? p[t] : top;  // a NaN stays in p, and makes the sum NaN
    }
    std::memset(y, 0, std::size_t(D) * 4);
    const float base = std::isinf(top) && top < 0 ? 0.0f : top;  // no key has a weight if all scores are -infinity
    const float total = weigh(p, count, base);
    for (std::int64_t t = 0; t + few <= count; t += few) {
      const float* v[few];
      for (std::int64_t k = 0; k < few; ++k) v[k] = row(values, first + t + k, room + k * D);
      add(p + t, v, y, D);
    }
    for (std::int64_t t = count / few * few; t < count; ++t) {
      const float* v = row(values, first + t, room);
      ISOTOPE_IVDEP
      for (std::int64_t d = 0; d < D; ++d) y[d] += p[t] * v[d];
    }
    const float factor = total == 0 ? 0.0f : 1.0f / total;
    for (std::int64_t d = 0; d < D; ++d) y[d] *= factor;
  }
  static float folded(float* sum) {
    for (std::int64_t half = parts / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) sum[k] += sum[k + half];
    return sum[0];
  }
  static float dot(const float* a, const float* b, std::int64_t n) {
    alignas(64) float sum[parts] = {};
    std::int64_t i = 0;
    for (; i + parts <= n; i += parts)
      for (std::int64_t k = 0; k < parts; ++k) sum[k] += a[i + k] * b[i + k];
    for (std::int64_t k = 0; i + k < n; ++k) sum[k] += a[i + k] * b[i + k];
    return folded(sum);
  }
  /// p = exp(p - base); returns the sum.
  static float weigh(float* p, std::int64_t n, float base) {
    alignas(64) float sum[parts] = {};
    std::int64_t i = 0;
    for (; i + parts <= n; i += parts) {
      for (std::int64_t k = 0; k < parts; ++k) p[i + k] = weight(p[i + k] - base);
      for (std::int64_t k = 0; k < parts; ++k) sum[k] += p[i + k];
    }
    for (std::int64_t k = 0; i + k < n; ++k) sum[k] += p[i + k] = weight(p[i + k] - base);
    return folded(sum);
  }
  static void add(const float* p, const float* const* v, float* y, std::int64_t n) {
    const float *const a = v[0], *const b = v[1], *const c = v[2], *const d = v[3];
    ISOTOPE_IVDEP
    for (std::int64_t i = 0; i < n; ++i) y[i] = (((y[i] + p[0] * a[i]) + p[1] * b[i]) + p[2] * c[i]) + p[3] * d[i];
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::attention_cached, P, kernels::portable> : portable::attention_cached {};
}  // namespace isotope::cpu
