#pragma once
/// The events that a training run sends to its caller. The library prints nothing: an application's sink turns events into lines, files and bars.
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace isotope::train {

/// An optimizer step has ended.
struct step_event {
  std::int64_t step = 0;   // counts from 1
  std::int64_t steps = 0;  // planned in total
  double loss = 0;         // mean over the micro-batches
  double grad_norm = 0;    // before clipping
  double learning_rate = 0;
  double ms = 0;
  double tokens_per_s = 0;
  bool skipped = false;  // loss or norm was not finite, so nothing was updated
};

/// The validation split was read to its end.
struct eval_event {
  std::int64_t step = 0;
  double val_loss = 0;
  bool best = false;
};

/// A checkpoint is safely on disk.
struct checkpoint_event {
  std::int64_t step = 0;
  std::string path;
  bool best = false;
};

enum class ending : std::uint8_t { finished, stopped, interrupted, early };

constexpr std::string_view name_of(ending e) {
  switch (e) {
    case ending::finished: return "finished";
    case ending::stopped: return "stopped";
    case ending::interrupted: return "interrupted";
    case ending::early: return "stopped early";
  }
  return "unknown";
}

/// The run ended in order. A run that failed returns its failure and sends no done_event.
struct done_event {
  std::int64_t steps = 0;  // finished in total, including those before a resume
  ending why = ending::finished;
  std::optional<double> val_loss;  // none without a validation split
  std::optional<double> best_val_loss;
  double seconds = 0;  // of this process
  std::int64_t planned_bytes = 0;
  std::int64_t measured_bytes = 0;  // the arena and the library's counted allocations
};

template <class S>
concept TakesSteps = requires(S& s, const step_event& e) { s(e); };
template <class S>
concept TakesEvals = requires(S& s, const eval_event& e) { s(e); };
template <class S>
concept TakesCheckpoints = requires(S& s, const checkpoint_event& e) { s(e); };
template <class S>
concept TakesEnding = requires(S& s, const done_event& e) { s(e); };
template <class S>
concept EventSink = TakesSteps<S> && TakesEvals<S> && TakesCheckpoints<S> && TakesEnding<S>;

/// A sink that ignores all events.
struct silent {
  template <class Event> void operator()(const Event&) const {}
};

static_assert(EventSink<silent>);
static_assert(!EventSink<int>);

}  // namespace isotope::train
