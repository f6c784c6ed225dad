#pragma once
/// One line of progress for a terminal: a pure function of the state and the terminal's width. It is ASCII, so one byte is one column.
#include <isotope/train/decimal.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace isotope::train {

struct progress {
  std::int64_t step = 0, steps = 0;
  double loss = 0;
  std::optional<double> val_loss;
  double tokens_per_s = 0;
  double seconds_left = -1;  // negative: unknown

  friend bool operator==(const progress&, const progress&) = default;
};

/// The smoothed time per step, for readable rates and an ETA that does not jump:
///   average <- average + (sample - average) max(1 / samples, 1 / window)
struct pace {
  std::int64_t samples = 0;
  double seconds_per_step = 0;

  void add(double seconds, std::int64_t window = 50) {
    ++samples;
    seconds_per_step += (seconds - seconds_per_step) / double(std::min(samples, window));
  }
  double seconds_left(std::int64_t steps) const { return samples == 0 ? -1 : seconds_per_step * double(steps); }
};

///  42% [=======>          ] 840/2000  loss 1.9321  val 2.0110  15.0k tok/s  ETA 1:02
/// It is never wider than `width`: first the bar shrinks (to 6 columns inside), then validation loss, bar and rate are dropped; finally the text is
/// cut.
inline std::string progress_bar(const progress& p, int width) {
  const auto room = std::size_t(std::max(width, 0));
  const double part = p.steps > 0 ? std::clamp(double(p.step) / double(p.steps), 0.0, 1.0) : 0.0;
  std::string percent = std::to_string(int(part * 100)) + "%";
  percent.insert(0, 4 - std::min<std::size_t>(percent.size(), 4), ' ');

  const std::string count = " " + std::to_string(p.step) + "/" + std::to_string(p.steps) + "  loss " + figure(p.loss, 4);
  const std::string val = p.val_loss ? "  val " + figure(*p.val_loss, 4) : "";
  const std::string rate = "  " + scaled(p.tokens_per_s) + " tok/s";
  const std::string eta = "  ETA " + clock_text(p.seconds_left);

  const auto bar = [&](const std::string& rest) -> std::string {
    const std::size_t taken = percent.size() + rest.size() + 3;
    if (taken + 6 > room) return {};
    const std::size_t inside = std::min<std::size_t>(room - taken, 40);
    const auto full = std::size_t(part * double(inside));
    std::string s(inside, ' ');
    std::fill_n(s.begin(), full, '=');
    if (full < inside && part > 0) s[full] = '>';
    return " [" + s + "]";
  };

  for (const std::string& rest : {count + val + rate + eta, count + rate + eta})
    if (const std::string b = bar(rest); !b.empty()) return percent + b + rest;
  for (const std::string& rest : {count + rate + eta, count + eta, count})
    if (percent.size() + rest.size() <= room) return percent + rest;
  return (percent + count).substr(0, room);
}

}  // namespace isotope::train
