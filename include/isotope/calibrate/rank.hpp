#pragma once
/// Orders devices, of any backends, by the predicted time of the same step, and says why a device has no place in the order.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "time_estimate.hpp"

namespace isotope {

/// A device of a backend, and what a step was predicted to take there. Plans differ between backends, so each program makes the candidates of its own
/// backend, and reads those of others from files: calibrate/rank_file.hpp.
struct rank_candidate {
  std::string backend, device, format;  // the names of backend and device, and the program's number format
  time_estimate estimate{};             // of a step
  std::int64_t planned_bytes = 0;       // that the plan takes of the device's memory
  std::int64_t device_bytes = 0;        // that can be allocated there; 0: it is unknown
  std::int64_t greatest_batch = 0;      // greatest_batch(device_bytes, ...)
  std::string problem = {};             // why there is no estimate; empty: there is one
  friend bool operator==(const rank_candidate&, const rank_candidate&) = default;
};

/// The greatest power of two, as a batch, whose plan fits; 0: not even one row does, or device_bytes is 0, which is unknown.
/// @param bytes_of  the planned bytes of a batch; negative: it has no plan, and greater ones have none
template <class Bytes> std::int64_t greatest_batch(std::int64_t device_bytes, const Bytes& bytes_of) {
  std::int64_t fits = 0;
  for (std::int64_t batch = 1; batch <= std::int64_t(1) << 20; batch *= 2) {
    const std::int64_t bytes = bytes_of(batch);
    if (bytes < 0 || bytes > device_bytes) break;
    fits = batch;
  }
  return fits;
}

/// Why a candidate has no place in the order, in one line; empty: it has one. A prediction counts only if every figure that it rests on was measured on the
/// device, and only if the plan fits there.
inline std::string refusal_of(const rank_candidate& c) {
  if (!c.problem.empty()) return c.problem;
  if (c.estimate.from == provenance::none) return "the device was not measured";
  if (c.estimate.from != provenance::measured)
    return "the prediction rests on figures that were not measured there: " + std::string(name_of(c.estimate.from));
  const double seconds = c.estimate.seconds();
  if (!(seconds > 0 && std::isfinite(seconds))) return "the prediction is " + std::to_string(seconds) + " s, which is no time";
  if (c.device_bytes > 0 && c.planned_bytes > c.device_bytes)
    return "the plan takes " + std::to_string(c.planned_bytes >> 20) + " MiB of " + std::to_string(c.device_bytes >> 20) +
           " MiB: " + (c.greatest_batch > 0 ? "batch " + std::to_string(c.greatest_batch) + " fits" : "a batch of 1 does not fit either");
  return {};
}

struct ranking {
  struct refusal {
    rank_candidate of;
    std::string reason;
  };
  std::vector<rank_candidate> order;  // the shortest time first
  std::vector<refusal> refusals;      // in the order in which the candidates were given
};

/// Orders candidates for the same step by time; of equal times, the plan of fewer bytes comes first, then names decide, so that the order in which they are
/// given does not matter.
inline ranking rank_by_time(std::vector<rank_candidate> all) {
  ranking r;
  for (rank_candidate& c : all)
    if (std::string reason = refusal_of(c); reason.empty()) r.order.push_back(std::move(c));
    else r.refusals.push_back({std::move(c), std::move(reason)});
  const auto key = [](const rank_candidate& c) {
    return std::tuple(c.estimate.seconds(), c.planned_bytes, std::string_view(c.backend), std::string_view(c.device),
                      std::string_view(c.format));
  };
  std::sort(r.order.begin(), r.order.end(), [&](const rank_candidate& a, const rank_candidate& b) { return key(a) < key(b); });
  return r;
}

}  // namespace isotope
