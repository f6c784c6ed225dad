// Attention by the definition and its gradient, which recomputes each probability from the stored log-denominators. Bound by flops:
// scores are computed D / 16 times and more.
#include "attention.h"

#include "f64.cuh"
#include "philox.cuh"

namespace isotope::cuda::gpu {

namespace {

constexpr int chunk = 16;  // columns of a result that a thread keeps in registers; each chunk recomputes the scores

// Returns the offset of the first column of a head.
__device__ inline std::int64_t place(const reference_attention_arguments& a, const attention_rows& r, std::int64_t b, std::int64_t row,
                                     std::int64_t head) {
  return b * r.batch + row * r.row + head * a.D;
}
// Query s may see the keys first_seen, first_seen + 1, ..., seen - 1.
__device__ inline std::int64_t seen(const reference_attention_arguments& a, std::int64_t s) {
  return a.causal != 0 ? s + 1 + a.T - a.S : a.T;
}
__device__ inline std::int64_t first_seen(const reference_attention_arguments& a, std::int64_t s) {
  return a.window != 0 && seen(a, s) > a.window ? seen(a, s) - a.window : 0;
}
__device__ inline double dot(const reference_attention_arguments& a, std::uint64_t x, std::int64_t ix, int x_type, std::uint64_t y,
                             std::int64_t iy, int y_type) {
  double sum = 0;
  for (std::int64_t d = 0; d < a.D; ++d) sum += load_f64(x, ix + d, x_type) * load_f64(y, iy + d, y_type);
  return sum;
}
__device__ inline double score(const reference_attention_arguments& a, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) {
  const std::int64_t g = h / (a.H / a.G);
  const double x = a.scale * dot(a, a.q, place(a, a.q_at, b, s, h), a.q_type, a.k, place(a, a.k_at, b, t, g), a.k_type);
  return a.mask != 0 ? x + load_f64(a.mask, b * a.mask_at.batch + t * a.mask_at.row, a.mask_type) : x;
}
// Returns the dropout factor of the probability of key t for query row (b H + h) S + s here. Mirrors op::attention_shape::words.
__device__ inline double share(const reference_attention_arguments& a, std::int64_t row, std::int64_t t) {
  if (a.dropped == 0) return 1;
  const scalars& s = *pointer<const scalars>(a.scalars);
  const std::int64_t head = row / a.S, drawn = (head + a.drawn_first + head / a.H * a.drawn_more) * a.S + row % a.S;
  const std::uint64_t element = std::uint64_t(drawn) << 32 | std::uint64_t(t / 4);
  const random_words words = philox(s.seed, element, std::uint32_t(s.counter), a.stream);
  const int k = int(t % 4);
  return (k == 0 ? words.word[0] : k == 1 ? words.word[1] : k == 2 ? words.word[2] : words.word[3]) > a.last ? a.factor : 0;
}

}  // namespace

// One query of a head per thread: the largest score, then the sum, then the mean of the values. A query that sees no key gives zeros
// and a log-denominator of -infinity, NaN in a score gives NaN.
extern "C" __global__ void __launch_bounds__(1024) reference_attention(const __grid_constant__ reference_attention_arguments a) {
  const std::int64_t i = item();
  if (i >= a.B * a.H * a.S) return;
  const std::int64_t s = i % a.S, h = i / a.S % a.H, b = i / (a.S * a.H), g = h / (a.H / a.G), first = first_seen(a, s), end = seen(a, s);
  double top = -infinity_f64(), total = 0;
  for (std::int64_t t = first; t < end; ++t) {
    const double x = score(a, b, h, s, t);
    if (x > top || x != x) top = x;
  }
  const bool blind = top == -infinity_f64();
  if (!blind)
    for (std::int64_t t = first; t < end; ++t) total += exp(score(a, b, h, s, t) - top);
  pointer<float>(a.lse)[b * a.lse_at.batch + h * a.lse_at.row + s] = float(blind ? top : top + log(total));

  const std::int64_t to = place(a, a.y_at, b, s, h);
  for (std::int64_t from = 0; from < a.D; from += chunk) {
    double sums[chunk];
#pragma unroll
    for (int d = 0; d < chunk; ++d) sums[d] = 0;
    if (!blind)
      for (std::int64_t t = first; t < end; ++t) {
        const double kept = share(a, i, t), p = kept == 0 ? 0 : exp(score(a, b, h, s, t) - top) * kept;
        const std::int64_t at = place(a, a.v_at, b, t, g) + from;
#pragma unroll
        for (int d = 0; d < chunk; ++d)
          if (from + d < a.D) sums[d] += p * load_f64(a.v, at + d, a.v_type);
      }
#pragma unroll
    for (int d = 0; d < chunk; ++d)
      if (from + d < a.D) store_f64(a.y, to + from + d, a.y_type, blind ? 0 : sums[d] / total);
  }
}

// The mean of dp under each query's probabilities, sum_d y dy, one query of a head per thread. Bound by bytes.
extern "C" __global__ void __launch_bounds__(1024) reference_attention_mean(const __grid_constant__ reference_attention_arguments a) {
  const std::int64_t i = item();
  if (i >= a.B * a.H * a.S) return;
  const std::int64_t s = i % a.S, h = i / a.S % a.H, b = i / (a.S * a.H);
  pointer<double>(a.means)[i] = dot(a, a.y, place(a, a.y_at, b, s, h), a.y_type, a.dy, place(a, a.dy_at, b, s, h), a.dy_type);
}

namespace {

// p multiplies dy; ds is the derivative with respect to the score.
struct probability {
  double p, ds;
};
__device__ inline probability probability_of(const reference_attention_arguments& a, std::int64_t b, std::int64_t h, std::int64_t s,
                                             std::int64_t t) {
  const std::int64_t i = (b * a.H + h) * a.S + s, g = h / (a.H / a.G);
  const double lse = double(pointer<const float>(a.lse)[b * a.lse_at.batch + h * a.lse_at.row + s]),
               mean = pointer<const double>(a.means)[i];
  if (lse == -infinity_f64()) return {0, 0};  // the query sees no key
  const double p = exp(score(a, b, h, s, t) - lse), kept = share(a, i, t);
  if (kept == 0) return {0, p * -mean};
  const double dp = dot(a, a.dy, place(a, a.dy_at, b, s, h), a.dy_type, a.v, place(a, a.v_at, b, t, g), a.v_type);
  return {p * kept, p * (dp * kept - mean)};
}

}  // namespace

// dq = scale dS k, one query of a head per thread.
extern "C" __global__ void __launch_bounds__(1024) reference_attention_dq(const __grid_constant__ reference_attention_arguments a) {
  const std::int64_t i = item();
  if (i >= a.B * a.H * a.S) return;
  const std::int64_t s = i % a.S, h = i / a.S % a.H, b = i / (a.S * a.H), g = h / (a.H / a.G), first = first_seen(a, s), end = seen(a, s);
  const std::int64_t to = place(a, a.dq_at, b, s, h);
  for (std::int64_t from = 0; from < a.D; from += chunk) {
    double sums[chunk];
#pragma unroll
    for (int d = 0; d < chunk; ++d) sums[d] = 0;
    for (std::int64_t t = first; t < end; ++t) {
      const double ds = probability_of(a, b, h, s, t).ds;
      const std::int64_t at = place(a, a.k_at, b, t, g) + from;
#pragma unroll
      for (int d = 0; d < chunk; ++d)
        if (from + d < a.D) sums[d] += ds * load_f64(a.k, at + d, a.k_type);
    }
#pragma unroll
    for (int d = 0; d < chunk; ++d)
      if (from + d < a.D) store_f64(a.dq, to + from + d, a.q_type, a.scale * sums[d]);
  }
}

// dk = scale dS^T q and dv = P^T dy, one key of a key-value head per thread.
extern "C" __global__ void __launch_bounds__(1024) reference_attention_dkv(const __grid_constant__ reference_attention_arguments a) {
  constexpr int part = chunk / 2;  // two results share the registers
  const std::int64_t i = item();
  if (i >= a.B * a.G * a.T) return;
  const std::int64_t t = i % a.T, g = i / a.T % a.G, b = i / (a.T * a.G), heads = a.H / a.G;
  const std::int64_t to_k = place(a, a.dk_at, b, t, g), to_v = place(a, a.dv_at, b, t, g);
  for (std::int64_t from = 0; from < a.D; from += part) {
    double dk[part], dv[part];
#pragma unroll
    for (int d = 0; d < part; ++d) dk[d] = dv[d] = 0;
    for (std::int64_t h = g * heads; h < (g + 1) * heads; ++h)
      for (std::int64_t s = 0; s < a.S; ++s) {
        if (t >= seen(a, s) || t < first_seen(a, s)) continue;
        const probability x = probability_of(a, b, h, s, t);
        const std::int64_t q_at = place(a, a.q_at, b, s, h) + from, dy_at = place(a, a.dy_at, b, s, h) + from;
#pragma unroll
        for (int d = 0; d < part; ++d)
          if (from + d < a.D) {
            dk[d] += x.ds * load_f64(a.q, q_at + d, a.q_type);
            dv[d] += x.p * load_f64(a.dy, dy_at + d, a.dy_type);
          }
      }
#pragma unroll
    for (int d = 0; d < part; ++d)
      if (from + d < a.D) {
        store_f64(a.dk, to_k + from + d, a.k_type, a.scale * dk[d]);
        store_f64(a.dv, to_v + from + d, a.v_type, dv[d]);
      }
  }
}

}  // namespace isotope::cuda::gpu
