// Draws tokens, a row per block. The likeliest tokens are found by their least member: bit by bit, the largest number at which the tokens from there on are as
// many, or weigh as much, as is wanted; then, among tokens of this number, the lowest ids. Bound by 32 passes over the row for each rule.
#include "sample.h"

#include "f64.cuh"
#include "philox.cuh"

namespace isotope::cuda::gpu {

namespace {

constexpr unsigned lanes = 0xffffffffu;
constexpr int warps = sample_threads / 32;
enum : int { temperature_column, top_p_column, min_p_column, penalty_column };  // as op::sample::number_column
enum : int { seed_low_column, seed_high_column, top_k_column, offset_column };  // as op::sample::key_column

/// The sum over the block in every thread, in a fixed order.
__device__ double sum_of_block(double x) {
  __shared__ double parts[warps];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(lanes, x, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < warps; ++w) sum += parts[w];
  return sum;
}
/// A token and its score; of equal scores the lowest token is the better.
struct choice {
  double score;
  std::int32_t token;  // negative: none
  __device__ bool better(const choice& than) const {
    return token >= 0 && (than.token < 0 || score > than.score || (score == than.score && token < than.token));
  }
};
__device__ choice best_of_block(choice c) {
  __shared__ choice parts[warps];
  for (int step = 16; step > 0; step /= 2) {
    const choice other{__shfl_xor_sync(lanes, c.score, step), __shfl_xor_sync(lanes, c.token, step)};
    if (other.better(c)) c = other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = c;
  __syncthreads();
  c = parts[0];
  for (int w = 1; w < warps; ++w)
    if (parts[w].better(c)) c = parts[w];
  return c;
}
/// Grows with the number; 0 for NaN and -infinity, which are never drawn.
__device__ std::uint32_t rank_of(float x) {
  if (!(double(x) > -infinity_f64())) return 0;
  const std::uint32_t bits = x == 0 ? 0 : __float_as_uint(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

/// The tokens of a row of which some remain: those with a rank above `least`, and those with this rank and an id below `end`.
class tokens {
 public:
  __device__ tokens(const reference_sample_arguments& a, std::int64_t n, std::int64_t p, float penalty)
      : a_(a), n_(n), end_(std::int32_t(a.V)) {
    penal_ = penalty > 0 && penalty != 1;
    if (!penal_) return;
    for (std::int64_t t = threadIdx.x; t < a.V; t += sample_threads) pointer<float>(a.values)[n * a.V + t] = given(t);
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i <= p; i += sample_threads) {  // equal tokens get equal values
      const std::int32_t t = pointer<const std::int32_t>(a.history)[n * a.T + i];
      if (t < 0 || t >= a.V) continue;
      const float x = given(t);
      pointer<float>(a.values)[n * a.V + t] = x < 0 ? penalty * x : x / penalty;
    }
    __syncthreads();
  }
  __device__ float value(std::int64_t t) const { return penal_ ? pointer<const float>(a_.values)[n_ * a_.V + t] : given(t); }
  __device__ bool has(std::int64_t t) const {
    const std::uint32_t r = rank_of(value(t));
    return r != 0 && (r > least_ || (r == least_ && t < end_));
  }
  /// Keeps the fewest of the largest tokens whose weights reach `wanted` > 0.
  template <class W> __device__ void keep(double wanted, const W& weight) {
    const auto sum = [&](const auto& in) {
      double part = 0;
      for (std::int64_t t = threadIdx.x; t < a_.V; t += sample_threads)
        if (has(t) && in(rank_of(value(t)), t)) part += weight(t);
      return sum_of_block(part);
    };
    std::uint32_t least = 0;
    for (std::uint32_t bit = 0x80000000u; bit != 0; bit /= 2)
      if (sum([&](std::uint32_t r, std::int64_t) { return r >= (least | bit); }) >= wanted) least |= bit;
    const double above = sum([&](std::uint32_t r, std::int64_t) { return r > least; });
    std::int32_t before = 0;  // ids below this one do not reach it
    for (std::int32_t bit = 1 << 30; bit != 0; bit /= 2)
      if ((before | bit) < a_.V && above + sum([&](std::uint32_t r, std::int64_t t) { return r == least && t < (before | bit); }) < wanted)
        before |= bit;
    least_ = least;
    end_ = before + 1;
  }

 private:
  const reference_sample_arguments& a_;
  std::int64_t n_;
  bool penal_;
  std::uint32_t least_ = 0;
  std::int32_t end_;

  __device__ float given(std::int64_t t) const { return load(a_.logits, n_ * a_.logits_stride + t, a_.logits_type); }
};

__device__ std::int32_t drawn(const reference_sample_arguments& a, std::int64_t n, std::int64_t p) {
  const float* const sampling = pointer<const float>(a.sampling) + n * a.sampling_stride;
  const std::int32_t* const key = pointer<const std::int32_t>(a.key) + n * a.key_stride;
  tokens row(a, n, p, sampling[penalty_column]);
  choice first{0, -1};
  for (std::int64_t t = threadIdx.x; t < a.V; t += sample_threads)
    if (const choice c{double(row.value(t)), std::int32_t(t)}; row.has(t) && c.better(first)) first = c;
  first = best_of_block(first);
  const double temperature = sampling[temperature_column], top = first.score;
  if (first.token < 0 || !(temperature > 0)) return first.token < 0 ? 0 : first.token;
  const auto z = [&](std::int64_t t) {
    const double x = row.value(t);
    return x == top ? 0.0 : (x - top) / temperature;
  };
  if (const std::int32_t k = key[top_k_column]; k > 0 && k < a.V) row.keep(double(k), [](std::int64_t) { return 1.0; });
  if (const double mass = sampling[top_p_column]; mass < 1) {
    float* const w = pointer<float>(a.weights) + n * a.V;
    double part = 0;
    for (std::int64_t t = threadIdx.x; t < a.V; t += sample_threads) part += double(w[t] = row.has(t) ? float(exp(z(t))) : 0.0f);
    const double wanted = mass * sum_of_block(part);
    row.keep(wanted > 1e-30 ? wanted : 1e-30, [&](std::int64_t t) { return double(w[t]); });
  }
  const double least = sampling[min_p_column] > 1 ? 1.0 : double(sampling[min_p_column]);
  const std::uint64_t seed = std::uint32_t(key[seed_low_column]) | std::uint64_t(std::uint32_t(key[seed_high_column])) << 32;
  const std::uint32_t counter = std::uint32_t(p + 1) + std::uint32_t(key[offset_column]);
  choice best{0, -1};
  for (std::int64_t t = threadIdx.x; t < a.V; t += sample_threads) {
    if (!row.has(t) || (least > 0 && !(exp(z(t)) >= least))) continue;
    const random_words words = philox(seed, std::uint64_t(t) / 4, counter, a.stream);
    const int k = int(t % 4);
    const std::uint32_t word = k == 0 ? words.word[0] : k == 1 ? words.word[1] : k == 2 ? words.word[2] : words.word[3];
    const choice c{z(t) - log(-log1p(-(double(word) + 0.5) * 2.3283064365386963e-10)), std::int32_t(t)};  // 2^-32
    if (c.better(best)) best = c;
  }
  return best_of_block(best).token;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(sample_threads) reference_sample(const __grid_constant__ reference_sample_arguments a) {
  const std::int64_t n = blockIdx.x, p = pointer<const std::int32_t>(a.position)[n];
  if (pointer<const std::int32_t>(a.draw)[n] < 0 || p < 0 || p >= a.T) return;
  const std::int32_t token = drawn(a, n, p);
  if (threadIdx.x != 0) return;
  pointer<std::int32_t>(a.position)[n] = std::int32_t(p + 1);
  if (p + 1 < a.T) pointer<std::int32_t>(a.history)[n * a.T + p + 1] = token;
  std::int32_t* const recent = pointer<std::int32_t>(a.recent) + n;
  for (std::int64_t k = a.K - 1; k > 0; --k) recent[k * a.N] = recent[(k - 1) * a.N];
  *recent = token;
}

}  // namespace isotope::cuda::gpu
