#pragma once
/// Which launches of a graph wait for which: those that must, and more where an order costs nothing.
#include <algorithm>
#include <vector>

#include "../queue/hazards.hpp"
#include "launch.hpp"

namespace isotope::cuda {

/// Whether a launch fills the device by itself. Two of these at the same time would share it and evict each other's data from its cache, so they are kept in
/// order.
inline bool fills_device(const dispatch& d) { return bytes_of(d) >= 30'000'000; }

/// Whether the launches of a graph run one after the other: where they move 4 MB on average, none gains by running beside another. The driver starts a chain in 2 to
/// 8 us of the calling thread, however long it is, and other graphs of 300 to 500 launches in 30 to 60 us (bench/CUDA.md).
inline bool is_chain(const std::vector<dispatch>& all) {
  std::int64_t bytes = 0;
  for (const dispatch& d : all) bytes += std::int64_t(bytes_of(d));
  return bytes >= std::int64_t(all.size()) * 4'000'000;
}

/// Exchanges between ranks run beside other work, and one after the other: every rank starts them in the same order. `exchanges_in_order`: beside nothing.
inline dispatch_edges graph_edges(const std::vector<dispatch>& all, bool exchanges_in_order = false) {
  const bool chain = is_chain(all);
  return plan_edges(all, [chain, exchanges_in_order](const dispatch& a, const dispatch& b) {
    const bool first = exchanges(a), second = exchanges(b);
    if (first || second) return exchanges_in_order || (first && second);
    return chain || (fills_device(a) && fills_device(b));
  });
}

}  // namespace isotope::cuda
