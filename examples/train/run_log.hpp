#pragma once
/// The JSON lines of a run, written to a file, kept for the report page, or both; and the same events for TensorBoard.
#include "../support/clock.hpp"
#include "../support/line_file.hpp"
#include "configuration.hpp"
#include "event_file.hpp"

#include <isotope/core/error.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/train/json_line.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace train_program {

class run_log {
 public:
  /// @param keeps    for a page
  /// @param earlier  the lines of the part before a resumed run, which the file still has
  run_log(bool keeps, std::string earlier) : keeps_(keeps), kept_(keeps ? std::move(earlier) : std::string()) {}

  /// @error as line_file::open
  isotope::result<void> open(const std::string& path, bool append) {
    auto file = support::line_file::open(path, append);
    if (!file) return std::move(file).error();
    file_ = *std::move(file);
    return {};
  }
  /// @param step  finished before this process
  /// @error as event_file::create
  isotope::result<void> open_board(const std::string& folder, std::int64_t step) {
    auto board = event_file::create(folder, step, support::unix_seconds_now());
    if (!board) return std::move(board).error();
    board_ = *std::move(board);
    return {};
  }
  bool listens() const { return file_.has_value() || keeps_; }
  void write(std::string_view line) {
    if (file_) file_->write(line);
    if (keeps_) kept_.append(line) += '\n';
  }
  /// Writes an event of the trainer as a line and, where TensorBoard has scalars of it, as a record.
  template <class Event> void record(const Event& e) {
    if (listens()) write(json_line(e));
    if constexpr (requires { tensorboard_record(e, 0.0); })
      if (board_) board_->write(tensorboard_record(e, support::unix_seconds_now()));
  }
  const std::string& kept() const { return kept_; }
  /// @error write_failed: some line or record is missing
  isotope::result<void> close() {
    auto lines = file_ ? file_->close() : isotope::result<void>();
    auto records = board_ ? board_->close() : isotope::result<void>();
    return lines ? records : lines;
  }

 private:
  std::optional<support::line_file> file_;
  std::optional<event_file> board_;
  bool keeps_;
  std::string kept_;
};

/// {"event":"run","step":..,"program":..,"title":..,"parameters":..,"settings":[{"key":..,"value":..,"origin":..}]}: every setting with the layer that set it.
/// @param step  finished before this process
/// @param more  further fields, each with a comma before it
inline std::string run_line(const configuration& c, const std::string& title, std::int64_t parameters, std::int64_t step,
                            std::string_view more) {
  using isotope::io::json_string;
  std::string r = R"({"event":"run","step":)" + std::to_string(step) + R"(,"program":)" + json_string(program) + R"(,"title":)" +
                  json_string(title) + R"(,"parameters":)" + std::to_string(parameters) + std::string(more) + R"(,"settings":[)";
  for (const isotope::config::setting& s : c.loaded.settings)
    r += std::string(r.back() == '[' ? "" : ",") + R"({"key":)" + json_string(s.key) + R"(,"value":)" + s.value + R"(,"origin":)" +
         json_string(s.origin) + "}";
  return r + "]}";
}

}  // namespace train_program
