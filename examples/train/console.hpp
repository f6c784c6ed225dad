#pragma once
/// Sends a run's events to a progress bar or plain lines on stdout, the log (JSON lines and TensorBoard), and the points of the plot.
#include "../support/clock.hpp"
#include "prediction.hpp"
#include "run_log.hpp"

#include <isotope/train/event.hpp>
#include <isotope/train/plain_line.hpp>
#include <isotope/train/plot.hpp>
#include <isotope/train/progress_bar.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace train_program {

class console {
 public:
  /// @param width  of the terminal; 0: plain lines
  console(int width, run_log& log) : width_(width), log_(log) {}

  void operator()(const isotope::train::step_event& e) {
    log_.record(e);
    curves.train.push_back({double(e.step), e.loss});
    pace_.add(e.ms / 1000);
    show(e);
    if (comparison) tell(comparison->take(e));
  }
  void operator()(const isotope::train::eval_event& e) {
    log_.record(e);
    curves.validation.push_back({double(e.step), e.val_loss});
    bar_.val_loss = e.val_loss;
    print(plain_line(e));
  }
  void operator()(const isotope::train::checkpoint_event& e) { print(plain_line(e)); }
  void operator()(const isotope::train::done_event& e) {
    log_.record(e);
    clear();
    bar_ = {};
    if (comparison) tell(comparison->end());
    print(plain_line(e));
  }

  void print(std::string_view line) {
    clear();
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
    if (width_ > 0 && bar_.steps > 0) draw();
  }

  /// Removes the bar from the screen.
  void clear() {
    if (shown_) std::fputs("\r\x1b[K", stdout), std::fflush(stdout);
    shown_ = false;
  }

  isotope::train::loss_curves curves;
  std::optional<step_comparison> comparison;

 private:
  void show(const isotope::train::step_event& e) {
    if (width_ == 0) {
      // Prints about a hundred lines per run, and always the first, last and skipped steps.
      const std::int64_t every = std::max<std::int64_t>(1, e.steps / 100);
      if (e.step % every == 0 || e.step == e.steps || pace_.samples == 1 || e.skipped) print(plain_line(e));
      return;
    }
    if (e.skipped) print(plain_line(e));
    bar_ = {e.step, e.steps, e.loss, bar_.val_loss, e.tokens_per_s, pace_.seconds_left(e.steps - e.step)};
    if (pace_.seconds_per_step > 0 && e.ms > 0) bar_.tokens_per_s = e.tokens_per_s * e.ms / 1000 / pace_.seconds_per_step;
    // A terminal is slow: ten updates a second suffice.
    if (const double now = support::seconds_now(); now - drawn_ >= 0.1 || e.step == e.steps) {
      drawn_ = now;
      draw();
    }
  }
  void tell(const std::string& line) {
    if (!line.empty()) print(line);
  }
  void draw() {
    // One column stays free, because a full line would wrap on some terminals.
    const std::string line = "\r" + isotope::train::progress_bar(bar_, width_ - 1) + "\x1b[K";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
    shown_ = true;
  }

  int width_;
  run_log& log_;
  isotope::train::pace pace_;
  isotope::train::progress bar_;
  double drawn_ = 0;
  bool shown_ = false;
};

}  // namespace train_program
