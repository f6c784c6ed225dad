#pragma once
// The logits of a row, and which of its tokens the rules have left: a block of threads works on a row.
#include "sample.h"

#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

/// Sums and maxima over the threads of a block, in a fixed order.
struct sample_block {
  static constexpr int threads = portable_sample_threads, warps = threads / 32;

  __device__ static float largest(float x) {
    __shared__ float parts[warps];
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[threadIdx.x % warps];
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
  }
  /// The least of the numbers, which are below 2^31.
  __device__ static int least(int x) {
    __shared__ int parts[warps];
    for (int step = 16; step > 0; step /= 2) x = min(x, __shfl_xor_sync(0xffffffffu, x, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[threadIdx.x % warps];
    for (int step = 16; step > 0; step /= 2) x = min(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
  }
  /// The sum of this thread's and all lower threads' numbers.
  __device__ static std::uint64_t sum_up_to(std::uint64_t x) {
    __shared__ std::uint64_t parts[warps];
    const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32);
    for (int step = 1; step < 32; step *= 2) {
      const std::uint64_t lower = __shfl_up_sync(0xffffffffu, x, step);
      if (lane >= step) x += lower;
    }
    __syncthreads();
    if (lane == 31) parts[warp] = x;
    __syncthreads();
    for (int w = 0; w < warp; ++w) x += parts[w];
    return x;
  }
};

/// Sums by bin in 64 bits, to which threads add in any order: as they are whole numbers, the order does not matter.
class sample_bins {
 public:
  static constexpr int count = 2048, own = count / sample_block::threads;

  __device__ void clear() {
    __syncthreads();
    for (int i = int(threadIdx.x); i < count; i += sample_block::threads) low_[i] = high_[i] = 0;
    __syncthreads();
  }
  __device__ void add(int bin, std::uint64_t x) {
    const std::uint32_t low = std::uint32_t(x), before = low == 0 ? 0 : atomicAdd(&low_[bin], low);
    const std::uint32_t high = std::uint32_t(x >> 32) + (before + low < before ? 1 : 0);
    if (high != 0) atomicAdd(&high_[bin], high);
  }
  /// The first bin, in falling order if `falling`, up to which the sums reach `wanted` > 0; `before` is the sum of those before it. Negative
  /// if all do not reach it.
  struct crossing {
    int bin;
    std::uint64_t before, own;
  };
  __device__ crossing reach(std::uint64_t wanted, bool falling) {
    __shared__ crossing found;
    __syncthreads();
    if (threadIdx.x == 0) found.bin = -1;
    std::uint64_t x[own], all = 0;
    for (int i = 0; i < own; ++i) all += x[i] = at(bin_of(i, falling));
    std::uint64_t before = sample_block::sum_up_to(all) - all;
    for (int i = 0; i < own; before += x[i], ++i)
      if (before < wanted && before + x[i] >= wanted) found = {bin_of(i, falling), before, x[i]};
    __syncthreads();
    return found;
  }

 private:
  std::uint32_t low_[count], high_[count];

  __device__ static int bin_of(int i, bool falling) {
    const int k = int(threadIdx.x) * own + i;
    return falling ? count - 1 - k : k;
  }
  __device__ std::uint64_t at(int bin) const { return std::uint64_t(high_[bin]) << 32 | low_[bin]; }
};

/// T: the format of logits. Tokens remain that have a rank above `least`, and those with this rank and an id below `end`.
template <int T> class sample_row {
 public:
  __device__ sample_row(const reference_sample_arguments& a, std::int64_t n, std::int64_t p, float penalty, sample_bins& bins,
                        std::uint32_t* seen)
      : at_(a.logits), first_(n * a.logits_stride), V_(int(a.V)), end_(V_), penalty_(penalty), bins_(bins), seen_(seen) {
    penal_ = penalty > 0 && penalty != 1;
    if (!penal_) return;
    for (int i = int(threadIdx.x); i < (V_ + 31) / 32; i += sample_block::threads) seen[i] = 0;
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i <= p; i += sample_block::threads) {
      const std::int32_t t = pointer<const std::int32_t>(a.history)[n * a.T + i];
      if (t >= 0 && t < V_) atomicOr(&seen[t / 32], 1u << (t % 32));
    }
    __syncthreads();
  }
  /// Calls f(t, value, rank) for the tokens that remain.
  template <class F> __device__ void each(const F& f) const {
#pragma unroll 4
    for (int t = int(threadIdx.x); t < V_; t += sample_block::threads) {
      const float x = value(t);
      if (const std::uint32_t r = rank_of(x); r > least_ || (r == least_ && r != 0 && t < end_)) f(t, x, r);
    }
  }
  __device__ float value(int t) const {
    const float x = get<T>(at_, first_ + t);
    if (!penal_ || (seen_[t / 32] >> (t % 32) & 1) == 0) return x;
    return x < 0 ? penalty_ * x : x / penalty_;
  }
  __device__ int size() const { return V_; }
  /// Keeps the fewest of the largest tokens whose weights reach `wanted` > 0. Equal values have equal weights.
  template <class W> __device__ void keep(std::uint64_t wanted, const W& weight) {
    std::uint32_t prefix = 0;  // the leading digits of the least rank
    std::uint64_t of_equal = 0;
    for (int digit = 0; digit < 3; ++digit) {
      const int shift = digit == 0 ? 21 : digit == 1 ? 10 : 0, bits = digit == 2 ? 10 : 11;
      bins_.clear();
      each([&](int, float x, std::uint32_t rank) {
        if (digit == 0 || rank >> (shift + bits) == prefix) bins_.add(int(rank >> shift & ((1u << bits) - 1)), weight(x));
      });
      const auto found = bins_.reach(wanted, true);
      if (found.bin < 0) return;  // all of them are needed
      prefix = prefix << bits | std::uint32_t(found.bin);
      wanted -= found.before;
      of_equal = found.own;
    }
    const int end = of_equal == wanted ? end_of(prefix) : first_ids(prefix, wanted, weight);
    least_ = prefix;
    end_ = end;
  }

 private:
  std::uint64_t at_;
  std::int64_t first_;
  int V_;
  std::uint32_t least_ = 0;
  int end_;
  bool penal_;
  float penalty_;
  sample_bins& bins_;
  const std::uint32_t* seen_;

  /// Grows with the number; 0 for NaN and -infinity, which are never drawn.
  __device__ static std::uint32_t rank_of(float x) {
    if (!(x > -INFINITY)) return 0;
    const std::uint32_t bits = x == 0 ? 0 : __float_as_uint(x);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  }
  /// All tokens of this rank that remain.
  __device__ int end_of(std::uint32_t rank) const { return rank == least_ ? end_ : V_; }
  /// The end of the lowest ids of this rank whose weights reach `wanted`.
  template <class W> __device__ int first_ids(std::uint32_t rank, std::uint64_t wanted, const W& weight) {
    const int in_bin = (V_ + sample_bins::count - 1) / sample_bins::count;
    bins_.clear();
    each([&](int t, float x, std::uint32_t r) {
      if (r == rank) bins_.add(t / in_bin, weight(x));
    });
    const auto found = bins_.reach(wanted, false);
    if (found.bin < 0) return end_of(rank);
    std::uint64_t sum = found.before;
    int t = found.bin * in_bin;
    const int limit = end_of(rank);
    for (; t < limit && sum < wanted; ++t)  // all threads alike: a bin has few tokens
      if (const float x = value(t); rank_of(x) == rank) sum += weight(x);
    return t;
  }
};

}  // namespace isotope::cuda::gpu
