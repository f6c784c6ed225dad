#pragma once
/// Writes events as lines for a log or a pipe: columns keep their width from step to step, so that they are easy to read.
#include <isotope/train/decimal.hpp>
#include <isotope/train/event.hpp>

#include <string>

namespace isotope::train {

namespace detail {

inline std::string right(std::string s, std::size_t width) { return s.size() < width ? std::string(width - s.size(), ' ') + s : s; }

}  // namespace detail

/// step   10/2000  loss 3.2041  norm 1.204  lr 1.00e-04  ms 51.2  tok/s 15.0k
inline std::string plain_line(const step_event& e) {
  const std::string steps = std::to_string(e.steps);
  return "step " + detail::right(std::to_string(e.step), steps.size()) + "/" + steps + "  loss " + figure(e.loss, 4) + "  norm " +
         figure(e.grad_norm, 3) + "  lr " + scientific(e.learning_rate, 2) + "  ms " + fixed(e.ms, 1) + "  tok/s " +
         scaled(e.tokens_per_s) + (e.skipped ? "  skipped: not finite" : "");
}

inline std::string plain_line(const eval_event& e) {
  return "eval at step " + std::to_string(e.step) + "  val loss " + figure(e.val_loss, 4) + (e.best ? "  best" : "");
}

inline std::string plain_line(const checkpoint_event& e) {
  return "saved step " + std::to_string(e.step) + "  " + e.path + (e.best ? "  best" : "");
}

inline std::string plain_line(const done_event& e) {
  std::string line = std::string(name_of(e.why)) + " after step " + std::to_string(e.steps);
  if (e.val_loss) line += "  val loss " + figure(*e.val_loss, 4);
  if (e.best_val_loss) line += "  best " + figure(*e.best_val_loss, 4);
  return line + "  time " + clock_text(e.seconds) + "  memory " + fixed(double(e.measured_bytes) / (1 << 20), 1) + " MiB";
}

}  // namespace isotope::train
