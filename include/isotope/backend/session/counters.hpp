#pragma once
/// What a session counts, and the ticket of a step that was submitted.
#include <cstddef>
#include <cstdint>

namespace isotope {

/// What a session did since it was loaded; differences between two readings describe the steps between them.
struct session_counters {
  std::int64_t steps = 0;        // runs of the first plan
  std::int64_t evaluations = 0;  // runs of other plans
  std::int64_t launches = 0;     // kernels started
  std::int64_t submits = 0;      // queue submissions
  std::int64_t barriers = 0;
  std::int64_t bytes_in = 0;   // of inputs that had changed, and of scalars
  std::int64_t bytes_out = 0;  // read back: loss and norm
};

/// A run of the first plan that was submitted and may still be under way. Collect it with session::collect, in the order of submission.
struct pending_step {
  std::uint64_t value = 0;  // of the queue's timeline; 0: nothing was submitted
  std::size_t frame = 0;
  std::uint8_t active = 0;
  std::int64_t optimizer_step = 0;
  bool asynchronous = false;  // the caller was not made to wait
};

}  // namespace isotope
