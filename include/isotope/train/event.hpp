#pragma once
/// What a training run tells its caller. The library prints nothing: an application's sink turns events into lines, files, bars.
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace isotope::train {

/// One optimizer step is over.
struct step_event {
  std::int64_t step = 0;   // 1 for the first
  std::int64_t steps = 0;  // planned in all
  double loss = 0;         // mean over the micro-batches
  double grad_norm = 0;    // before clipping
  double learning_rate = 0;
  double ms = 0;
  double tokens_per_s = 0;
  bool skipped = false;  // loss or norm not finite: nothing was updated
};

/// The validation split was read from end to end.
struct eval_event {
  std::int64_t step = 0;
  double val_loss = 0;
  bool best = false;
};

/// A checkpoint is safely on the disk.
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

/// The run ended in order; a run that failed returns its failure and sends no done_event.
struct done_event {
  std::int64_t steps = 0;  // finished in all, those before a resume included
  ending why = ending::finished;
  std::optional<double> val_loss;  // none without a validation split
  std::optional<double> best_val_loss;
  double seconds = 0;  // of this process
  std::int64_t planned_bytes = 0;
  std::int64_t measured_bytes = 0;  // arena and the library's counted allocations
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

/// Listens to nothing.
struct silent {
  template <class Event> void operator()(const Event&) const {}
};

static_assert(EventSink<silent>);
static_assert(!EventSink<int>);

}  // namespace isotope::train
