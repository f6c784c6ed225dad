#pragma once
/// Initial values of a whole tensor, made on the host by several threads.
#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include "../core/initialize.hpp"

namespace isotope {

/// x[i] = element i of a parameter with this random stream: the same bits whatever the number of threads.
inline void fill_initial(const initializer& how, std::uint64_t seed, std::uint32_t stream, std::span<float> x) {
  const std::int64_t n = std::int64_t(x.size()), all = (n + 3) / 4;
  const auto part = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t b = first; b < end; ++b) {
      const auto four = initial_values(how, seed, stream, std::uint64_t(b));
      for (std::int64_t i = 4 * b; i < std::min(n, 4 * b + 4); ++i) x[std::size_t(i)] = float(four[std::size_t(i - 4 * b)]);
    }
  };
  const std::int64_t threads = std::clamp<std::int64_t>(std::min<std::int64_t>(std::thread::hardware_concurrency(), all >> 14), 1, 16);
  std::vector<std::thread> helpers;
  for (std::int64_t t = 1; t < threads; ++t) helpers.emplace_back(part, all * t / threads, all * (t + 1) / threads);
  part(0, all / threads);
  for (auto& t : helpers) t.join();
}

}  // namespace isotope
