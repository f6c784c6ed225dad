#pragma once
/// The only writer of a folder of checkpoints. It holds a lock on `writer.lock` in the folder; the system releases the lock when the process ends for
/// any reason. The file names the process. Only the holder of the lock removes files.
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/io/checkpoint_folder.hpp>
#include <isotope/io/file_lock.hpp>

namespace isotope::io {

/// Copies share the lock.
class checkpoint_writer : public checkpoint_folder {
 public:
  /// Makes the folder if it is missing, takes its lock and removes what a killed writer left.
  ///
  /// @param keep  how many step files remain after a save, at least 1
  /// @error invalid_argument: keep < 1; in_use: another process writes there, named by its number; write_failed: the folder or the lock cannot be
  /// made
  static result<checkpoint_writer> open(const std::string& path, int keep = 3) {
    if (keep < 1) return fail(errc::invalid_argument, "keeping " + std::to_string(keep) + " checkpoints", path, "keep at least 1");
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error || !std::filesystem::is_directory(path, error))
      return fail(errc::write_failed, "cannot make the checkpoint folder: " + (error ? error.message() : "a file has its name"), path,
                  "check the path and its permissions");
    auto lock = file_lock::take((std::filesystem::path(path) / lock_name).string());
    if (!lock) return fail(lock.error().code, lock.error().what, path, "let that process end, or name another folder");
    checkpoint_writer writer(path, keep, std::make_shared<file_lock>(*std::move(lock)));
    for (const std::string& file : writer.names())
      if (const auto mark = file.find(temporary_mark);
          mark != file.npos &&
          (step_of(file.substr(0, mark)) >= 0 || file.substr(0, mark) == best_name || has_ended(file.substr(mark + temporary_mark.size()))))
        std::filesystem::remove(writer.path_ / file, error);
    return writer;
  }

  /// Saves under the step's name, then removes all but the `keep` newest of the steps up to it. Later steps, of an abandoned run, remain.
  ///
  /// @error as save_checkpoint; then nothing is removed
  result<void> save(const checkpoint_view& view, const file_calls& calls = {}) const {
    return saved(view.state.step, save_checkpoint(path_of(view.state.step), view, calls));
  }
  /// The same for tensors whose bytes arrive in pieces: see `give` of save_checkpoint.
  template <class Give>
  result<void> save(const training_state& state, std::span<const tensor_entry> tensors, const Give& give,
                    const file_calls& calls = {}) const {
    return saved(state.step, save_checkpoint(path_of(state.step), state, tensors, give, calls));
  }

  /// Saves as the best so far. @error as save_checkpoint
  result<void> save_best(const checkpoint_view& view, const file_calls& calls = {}) const {
    return save_checkpoint(best_path(), view, calls);
  }
  template <class Give>
  result<void> save_best(const training_state& state, std::span<const tensor_entry> tensors, const Give& give,
                         const file_calls& calls = {}) const {
    return save_checkpoint(best_path(), state, tensors, give, calls);
  }

  static constexpr const char* lock_name = "writer.lock";

 private:
  /// Whether the process of a temporary file, `<process>-<n>`, has ended: then nobody owns what it was writing, such as a plot.
  static bool has_ended(std::string_view rest) {
    const auto number = [&rest] {
      std::int32_t n = -1;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
      if (error != std::errc()) return std::int64_t(-1);
      rest.remove_prefix(std::size_t(end - rest.data()));
      return std::int64_t(n);
    };
    const std::int64_t process = number();
    if (process <= 0 || !rest.starts_with('-')) return false;
    rest.remove_prefix(1);
    return number() >= 0 && rest.empty() && ::kill(pid_t(process), 0) != 0 && errno == ESRCH;
  }

  /// Removes what a successful save makes superfluous.
  result<void> saved(std::int64_t step, result<void> outcome) const {
    if (!outcome) return outcome;
    auto old = list();
    std::erase_if(old, [&](const entry& e) { return e.step > step; });
    std::error_code ignored;
    for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < old.size(); ++i) std::filesystem::remove(old[i].path, ignored);
    return outcome;
  }

  checkpoint_writer(const std::string& path, int keep, std::shared_ptr<file_lock> lock)
      : checkpoint_folder(path), keep_(keep), lock_(std::move(lock)) {}

  int keep_;
  std::shared_ptr<file_lock> lock_;
};

}  // namespace isotope::io
