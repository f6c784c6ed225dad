#pragma once
/// Initial values of a whole tensor, computed on the host by several threads.
#include <span>

#include "../../core/initialize.hpp"
#include "worker_team.hpp"

namespace isotope {

/// Calls put(i, values, n) for the elements [first, end) of a parameter of `count` elements with this random stream, in runs of n elements from i on, on all threads
/// of a team. `first` is a multiple of `initial_run`. The values do not depend on the number of threads.
template <class Put>
void compute_initial(worker_team& team, const initializer& how, std::uint64_t seed, std::uint32_t stream, std::int64_t count,
                     std::int64_t first, std::int64_t end, const Put& put) {
  const std::int64_t begin = first / initial_run, runs = (end - first + initial_run - 1) / initial_run, threads = team.size();
  team.run([&](std::int64_t t) {
    for_initial_runs(how, seed, stream, count, begin + runs * t / threads, begin + runs * (t + 1) / threads, put);
  });
}

/// x[i] = element i of a parameter with this random stream.
inline void fill_initial(const initializer& how, std::uint64_t seed, std::uint32_t stream, std::span<float> x) {
  const auto n = std::int64_t(x.size());
  worker_team team(worker_team::threads_for(n, 4096 * initial_run));
  compute_initial(team, how, seed, stream, n, 0, n, [&](std::int64_t i, const double* run, std::int64_t some) {
    for (std::int64_t k = 0; k < some; ++k) x[std::size_t(i + k)] = float(run[k]);
  });
}

}  // namespace isotope
