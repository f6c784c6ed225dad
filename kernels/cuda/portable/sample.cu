// Draws tokens, a row per block. The likeliest tokens are found by their least member, digit by digit of its bits (radix selection); weights are added as whole
// numbers of 2^-40. Scores are compared in f32, and near the largest in f64. Bound by latency: a pass over the row, from the L2 cache, for each digit.
#include "sample_row.cuh"

#include "../reference/philox.cuh"

namespace isotope::cuda::gpu {

enum : int { temperature_column, top_p_column, min_p_column, penalty_column };  // as op::sample::number_column
enum : int { seed_low_column, seed_high_column, top_k_column, offset_column };  // as op::sample::key_column

/// The Gumbel scores of tokens: (x - top) / temperature - log(-log(1 - u)).
struct gumbel_scores {
  float top, temperature, inverse;
  std::uint64_t seed;
  std::uint32_t counter, stream;

  __device__ std::uint32_t word(int t) const {
    const random_words words = philox(seed, std::uint64_t(t) / 4, counter, stream);
    const int k = t % 4;
    return k == 0 ? words.word[0] : k == 1 ? words.word[1] : k == 2 ? words.word[2] : words.word[3];
  }
  __device__ double exact_distance(float x) const { return x == top ? 0.0 : (double(x) - double(top)) / double(temperature); }
  __device__ float distance(float x) const { return x == top ? 0.0f : (x - top) * inverse; }
  __device__ double exact(int t, float x) const {
    return exact_distance(x) - log(-log1p(-(double(word(t)) + 0.5) * 2.3283064365386963e-10));  // 2^-32
  }
  /// With an error of less than `slack` of its size and 1.
  static constexpr float slack = 1e-4f;
  __device__ float near(int t, float x) const {
    const std::uint32_t w = word(t);
    const float e = w >> 31 == 0 ? -log1pf(-(float(w) + 0.5f) * 2.3283064e-10f) : -logf((float(~w) + 0.5f) * 2.3283064e-10f);
    return distance(x) - logf(e);
  }
};

template <int T>
__device__ inline int drawn(const reference_sample_arguments& a, std::int64_t n, std::int64_t p, sample_bins& bins, std::uint32_t* seen) {
  const float* const sampling = pointer<const float>(a.sampling) + n * a.sampling_stride;
  const std::int32_t* const key = pointer<const std::int32_t>(a.key) + n * a.key_stride;
  sample_row<T> row(a, n, p, sampling[penalty_column], bins, seen);
  constexpr int none = 0x7fffffff;
  float most = -INFINITY;
  row.each([&](int, float x, std::uint32_t) { most = fmaxf(most, x); });
  const float top = sample_block::largest(most), temperature = sampling[temperature_column];
  if (!(temperature > 0)) {
    int first = none;
    if (most == top) row.each([&](int t, float x, std::uint32_t) { first = x == top ? min(first, t) : first; });
    first = sample_block::least(first);
    return first == none ? 0 : first;
  }
  if (top == -INFINITY) return 0;
  const gumbel_scores scores{top,
                             temperature,
                             1 / temperature,
                             std::uint32_t(key[seed_low_column]) | std::uint64_t(std::uint32_t(key[seed_high_column])) << 32,
                             std::uint32_t(p + 1) + std::uint32_t(key[offset_column]),
                             a.stream};
  if (const std::int32_t k = key[top_k_column]; k > 0 && k < row.size()) row.keep(std::uint64_t(k), [](float) { return std::uint64_t(1); });
  if (const double mass = sampling[top_p_column]; mass < 1) {
    const auto weight = [&](float x) { return std::uint64_t(double(expf(scores.distance(x))) * 1099511627776.0 + 0.5); };  // 2^40
    std::uint64_t sum = 0;
    row.each([&](int, float x, std::uint32_t) { sum += weight(x); });
    __shared__ std::uint64_t all;
    sum = sample_block::sum_up_to(sum);
    if (threadIdx.x == sample_block::threads - 1) all = sum;
    __syncthreads();
    const double wanted = ceil(mass * double(all));
    row.keep(wanted >= 1 ? std::uint64_t(wanted) : 1, weight);
  }
  const double least = sampling[min_p_column] > 1 ? 1.0 : double(sampling[min_p_column]);
  const float low = least > 0 ? logf(float(least)) : -INFINITY;
  const auto weighs = [&](float x) {
    const float d = scores.distance(x) - low, margin = 1e-4f * (1 - low);
    return !(least > 0) || d > margin || (d >= -margin && exp(scores.exact_distance(x)) >= least);
  };
  float own = -INFINITY;
  row.each([&](int t, float x, std::uint32_t) {
    if (weighs(x)) own = fmaxf(own, scores.near(t, x));
  });
  const float best = sample_block::largest(own), bound = best - gumbel_scores::slack * (1 + fabsf(best));
  __shared__ double warp_scores[sample_block::warps];
  __shared__ int warp_tokens[sample_block::warps];
  double score = 0;
  int token = none;
  const auto take = [&](double s, int t) {
    if (t != none && (token == none || s > score || (s == score && t < token))) score = s, token = t;
  };
  if (own >= bound && best > -INFINITY)
    row.each([&](int t, float x, std::uint32_t) {
      if (weighs(x) && scores.near(t, x) >= bound) take(scores.exact(t, x), t);
    });
  for (int step = 16; step > 0; step /= 2) {
    const double s = __shfl_xor_sync(0xffffffffu, score, step);
    const int t = __shfl_xor_sync(0xffffffffu, token, step);
    take(s, t);
  }
  if (threadIdx.x % 32 == 0) warp_scores[threadIdx.x / 32] = score, warp_tokens[threadIdx.x / 32] = token;
  __syncthreads();
  for (int w = 0; w < sample_block::warps; ++w) take(warp_scores[w], warp_tokens[w]);
  return token == none ? 0 : token;
}

template <int T> __device__ inline void sample(const reference_sample_arguments& a) {
  __shared__ sample_bins bins;
  const std::int64_t n = blockIdx.x, p = pointer<const std::int32_t>(a.position)[n];
  if (pointer<const std::int32_t>(a.draw)[n] < 0 || p < 0 || p >= a.T) return;
  const int token = drawn<T>(a, n, p, bins, reinterpret_cast<std::uint32_t*>(dynamic_shared()));
  __syncthreads();  // everybody has read the history and the position
  if (threadIdx.x != 0) return;
  pointer<std::int32_t>(a.position)[n] = std::int32_t(p + 1);
  if (p + 1 < a.T) pointer<std::int32_t>(a.history)[n * a.T + p + 1] = token;
  std::int32_t* const recent = pointer<std::int32_t>(a.recent) + n;
  for (std::int64_t k = a.K - 1; k > 0; --k) recent[k * a.N] = recent[(k - 1) * a.N];
  *recent = token;
}

extern "C" __global__ void __launch_bounds__(1024) sample_f32(const __grid_constant__ reference_sample_arguments a) { sample<f32>(a); }
extern "C" __global__ void __launch_bounds__(1024) sample_bf16(const __grid_constant__ reference_sample_arguments a) { sample<bf16>(a); }
extern "C" __global__ void __launch_bounds__(1024) sample_f16(const __grid_constant__ reference_sample_arguments a) { sample<f16>(a); }

}  // namespace isotope::cuda::gpu
