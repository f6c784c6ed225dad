#pragma once
/// Initial values of a whole tensor, computed on the host by several threads.
#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include "../../core/initialize.hpp"

namespace isotope {

/// x[i] = element i of a parameter with this random stream. The bits do not depend on the number of threads.
inline void fill_initial(const initializer& how, std::uint64_t seed, std::uint32_t stream, std::span<float> x) {
  const auto n = std::int64_t(x.size()), all = (n + initial_run - 1) / initial_run;
  const auto part = [&](std::int64_t first, std::int64_t end) {
    for_initial_runs(how, seed, stream, n, first, end, [&](std::int64_t i, const double* run, std::int64_t some) {
      for (std::int64_t k = 0; k < some; ++k) x[std::size_t(i + k)] = float(run[k]);
    });
  };
  const std::int64_t threads = std::clamp<std::int64_t>(std::min<std::int64_t>(std::thread::hardware_concurrency(), all >> 12), 1, 16);
  std::vector<std::thread> helpers;
  for (std::int64_t t = 1; t < threads; ++t) helpers.emplace_back(part, all * t / threads, all * (t + 1) / threads);
  part(0, all / threads);
  for (auto& t : helpers) t.join();
}

}  // namespace isotope
