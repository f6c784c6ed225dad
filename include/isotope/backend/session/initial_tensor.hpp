#pragma once
/// Initial values of a whole tensor, computed on the host by several threads.
#include <span>

#include <algorithm>
#include <vector>

#include "../../core/initialize.hpp"
#include "../../plan/local_plan.hpp"
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

/// The elements of a slot that a rank holds, in runs that are short enough for one task.
inline std::vector<piece_run> initial_pieces(const slot& s, int tensor) {
  constexpr std::int64_t most = 256 * initial_run;
  std::vector<piece_run> all;
  for_piece_runs(s, tensor, [&](piece_run r) {
    for (; r.count > 0; r.here += most, r.whole += most, r.count -= most) all.push_back({r.here, r.whole, std::min(most, r.count)});
  });
  return all;
}
/// Calls put(i, values, n) for the elements of a run, i being their index on this rank: the numbers that they have in the whole parameter.
template <class Put> void for_initial_piece(const slot& s, std::uint64_t seed, const piece_run& r, const Put& put) {
  const std::int64_t end = r.whole + r.count, all = s.pieces.whole(s.dims).count();
  for_initial_runs(s.init, seed, stream_of(s.path.view()), all, r.whole / initial_run, (end + initial_run - 1) / initial_run,
                   [&](std::int64_t i, const double* x, std::int64_t n) {
                     const std::int64_t first = std::max(i, r.whole), last = std::min(i + n, end);
                     put(r.here + first - r.whole, x + (first - i), last - first);
                   });
}
/// x = the elements of a slot that a rank holds; 0 in rows of padding.
inline void fill_initial(const slot& s, int tensor, std::uint64_t seed, std::span<float> x) {
  if (!s.pieces.divides()) return fill_initial(s.init, seed, stream_of(s.path.view()), x);
  for (float& v : x) v = 0;
  for (const piece_run& r : initial_pieces(s, tensor))
    for_initial_piece(s, seed, r, [&](std::int64_t i, const double* run, std::int64_t n) {
      for (std::int64_t k = 0; k < n; ++k) x[std::size_t(i + k)] = float(run[k]);
    });
}

}  // namespace isotope
