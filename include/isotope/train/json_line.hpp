#pragma once
/// Writes events as JSON lines: one object each, no newline, keys in a fixed order. A number that JSON cannot hold (NaN, infinity) is null.
#include <isotope/train/decimal.hpp>
#include <isotope/train/event.hpp>

#include <cmath>
#include <optional>
#include <string>

namespace isotope::train {

namespace detail {

inline std::string json_number(double v) { return std::isfinite(v) ? shortest(v) : "null"; }
inline std::string json_number(std::optional<double> v) { return v ? json_number(*v) : "null"; }

}  // namespace detail

inline std::string json_line(const step_event& e) {
  return R"({"event":"step","step":)" + std::to_string(e.step) + R"(,"loss":)" + detail::json_number(e.loss) + R"(,"grad_norm":)" +
         detail::json_number(e.grad_norm) + R"(,"lr":)" + detail::json_number(e.learning_rate) + R"(,"ms":)" + detail::json_number(e.ms) +
         R"(,"tokens_per_s":)" + detail::json_number(e.tokens_per_s) + "}";
}

inline std::string json_line(const eval_event& e) {
  return R"({"event":"eval","step":)" + std::to_string(e.step) + R"(,"val_loss":)" + detail::json_number(e.val_loss) + "}";
}

inline std::string json_line(const done_event& e) {
  return R"({"event":"done","steps":)" + std::to_string(e.steps) + R"(,"val_loss":)" + detail::json_number(e.val_loss) +
         R"(,"best_val_loss":)" + detail::json_number(e.best_val_loss) + R"(,"seconds":)" + detail::json_number(e.seconds) +
         R"(,"planned_bytes":)" + std::to_string(e.planned_bytes) + R"(,"measured_bytes":)" + std::to_string(e.measured_bytes) + "}";
}

}  // namespace isotope::train
