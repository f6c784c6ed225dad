#pragma once
/// The counters of a session, and the handle of a submitted step.
#include <cstddef>
#include <cstdint>

namespace isotope {

/// What a session has done since it was loaded; the difference of two readings describes the steps between them.
struct session_counters {
  std::int64_t steps = 0;        // runs of the first plan
  std::int64_t evaluations = 0;  // runs of other plans
  std::int64_t launches = 0;     // kernels started
  std::int64_t submits = 0;      // queue submissions
  std::int64_t barriers = 0;
  std::int64_t bytes_in = 0;   // uploaded: scalars, and inputs that had changed
  std::int64_t bytes_out = 0;  // read back: loss and gradient norm
};

/// A submitted run of the first plan, which may still be in flight. Pass it to session::collect, in the order of submission.
struct pending_step {
  std::uint64_t value = 0;  // on the queue's timeline; 0: nothing was submitted
  std::size_t frame = 0;
  std::uint8_t active = 0;
  std::int64_t optimizer_step = 0;
  bool asynchronous = false;  // from `submit`, which does not wait
};

}  // namespace isotope
