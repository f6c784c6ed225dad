#pragma once
/// Reads the JSON log of the earlier part of a resumed run.
#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>
#include <isotope/train/plot.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace train_program {

namespace detail {

/// Returns a number of an event; NaN for null and for anything else that is not a number.
inline double number_in(const isotope::io::json& event, std::string_view key) {
  double v = std::numeric_limits<double>::quiet_NaN();
  if (const auto* found = event.find(key); found != nullptr && found->is == isotope::io::json::kind::number)
    std::from_chars(found->text.data(), found->text.data() + found->text.size(), v);
  return v;
}

}  // namespace detail

/// What the log of a resumed run has already.
struct earlier_log {
  isotope::train::loss_curves curves;
  std::string lines;
};

/// Cuts the log back to the steps that the checkpoint holds: a killed run may have logged more steps, which are repeated, and `done` was not its end.
/// The log of a resumed run then equals that of an uninterrupted one. Lines that are not events, such as one cut short, are dropped, too.
///
/// @param step  of the checkpoint
/// @return      the remaining lines and their losses; none without a log
/// @error       unreadable, write_failed (the log is unchanged)
inline isotope::result<earlier_log> cut_log(const std::string& path, std::int64_t step) {
  earlier_log log;
  const auto file = isotope::io::read_file(path);
  if (!file && file.error().code == isotope::errc::not_found) return log;
  if (!file) return file.error();
  const std::string_view text = file->text();
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const auto event = isotope::io::parse_json(line, path);
    const auto* kind = event ? event->find("event") : nullptr;
    if (kind == nullptr || !(detail::number_in(*event, "step") <= double(step))) continue;
    log.lines.append(line) += '\n';
    if (kind->text != "step" && kind->text != "eval") continue;
    const isotope::train::point p{detail::number_in(*event, "step"), detail::number_in(*event, kind->text == "step" ? "loss" : "val_loss")};
    (kind->text == "step" ? log.curves.train : log.curves.validation).push_back(p);
  }
  if (auto r = isotope::io::write_file(path, log.lines); !r) return std::move(r).error();
  return log;
}

}  // namespace train_program
