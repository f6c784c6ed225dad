#pragma once
/// What this processor can do at best, measured on the spot: the yardstick of every row.
#include <chrono>
#include <cstdint>
#include <vector>

#include <isotope/backend/cpu/thread_pool.hpp>

namespace bench {

/// Seconds of the best of `rounds` calls.
template <class F> double best_of(int rounds, const F& f) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (s < best) best = s;
  }
  return best;
}

/// y = y x + c on 32 vectors of 16 numbers that stay in registers: f32 operations per second of all threads.
inline double peak_flops(isotope::cpu::thread_pool& pool) {
  constexpr int vectors = 16, lanes = 16, turns = 200'000;
  typedef float lane_vector __attribute__((vector_size(4 * lanes)));
  std::vector<float> keep(std::size_t(pool.size()));
  const double seconds = best_of(5, [&] {
    pool.parallel(pool.size(), [&](std::int64_t task, int) {
      lane_vector y[vectors];
      for (int i = 0; i < vectors; ++i) y[i] = lane_vector{} + float(i);
      const lane_vector x = lane_vector{} + 0.999f, c = lane_vector{} + 0.001f;
      for (int t = 0; t < turns; ++t) {
        for (int i = 0; i < vectors; ++i)
          for (int l = 0; l < lanes; ++l) y[i][l] = __builtin_fmaf(y[i][l], x[l], c[l]);
      }
      float sum = 0;
      for (int i = 0; i < vectors; ++i) sum += y[i][0];
      keep[std::size_t(task)] = sum;
    });
  });
  return 2.0 * vectors * lanes * turns * pool.size() / seconds;
}

/// A copy of 64 MiB, far beyond the caches: bytes read and written per second by all threads.
inline double peak_bytes(isotope::cpu::thread_pool& pool) {
  constexpr std::int64_t n = 16 << 20, chunk = 1 << 16;
  std::vector<float> x(n, 1.0f), y(n);
  const double seconds = best_of(5, [&] {
    pool.parallel(n / chunk, [&](std::int64_t task, int) {
      const float* from = x.data() + task * chunk;
      float* to = y.data() + task * chunk;
      for (std::int64_t i = 0; i < chunk; ++i) to[i] = from[i];
    });
  });
  return 8.0 * double(n) / seconds;
}

struct peaks {
  double flops = 0, bytes = 0;
};
/// Both, measured once for a number of threads.
inline peaks peaks_of(int threads) {
  static peaks known[65];
  auto& p = known[threads < 64 ? threads : 64];
  if (p.flops == 0) {
    isotope::cpu::thread_pool pool(threads);
    p = {peak_flops(pool), peak_bytes(pool)};
  }
  return p;
}

}  // namespace bench
