#pragma once
/// The event file of a run for TensorBoard: every record is in the file when `write` returns, so that a running TensorBoard shows it.
#include <isotope/core/error.hpp>
#include <isotope/io/descriptor.hpp>
#include <isotope/train/tensorboard_writer.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace train_program {

class event_file {
 public:
  /// Makes the folder if it is missing, and in it a new file `events.out.tfevents.<seconds>.isotope.<n>`. TensorBoard reads the files of a folder in the order of
  /// their names, so that a resumed run goes on after those that are there.
  /// @param step  finished before this process
  /// @error invalid_argument: the path and the system's reason
  static isotope::result<event_file> create(const std::string& folder, std::int64_t step, double unix_seconds) {
    const auto refuse = [](const std::string& path, const std::string& what, int error) {
      return isotope::fail(isotope::errc::invalid_argument, what + ": " + isotope::io::detail::reason(error), path,
                           "name a folder that you may write to");
    };
    std::error_code unmade;
    std::filesystem::create_directories(folder, unmade);
    if (unmade) return refuse(folder, "the folder for TensorBoard cannot be made", unmade.value());
    event_file f;
    int file = -1;
    for (int n = 0; file < 0; ++n) {
      f.path_ = folder + "/events.out.tfevents." + std::to_string(std::int64_t(unix_seconds)) + ".isotope." + std::to_string(n);
      file = ::open(f.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
      if (file < 0 && (errno != EEXIST || n == 9)) return refuse(f.path_, "cannot write", errno);
    }
    f.file_ = isotope::io::detail::descriptor(file);
    f.write(isotope::train::tensorboard_version(unix_seconds));
    if (step > 0) f.write(isotope::train::tensorboard_restart(step + 1, unix_seconds));
    return f;
  }

  /// Keeps the first error for `close`, after which nothing is written; a full disk must not end a training run.
  void write(std::string_view record) {
    while (error_ == 0 && !record.empty()) {
      const ssize_t put = ::write(file_.get(), record.data(), record.size());
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) error_ = put == 0 ? ENOSPC : errno;
      else record.remove_prefix(std::size_t(put));
    }
  }

  /// @error write_failed: some record is missing
  isotope::result<void> close() {
    if (file_.close() != 0 && error_ == 0) error_ = errno;
    if (error_ == 0) return {};
    return isotope::fail(isotope::errc::write_failed, "records are missing: " + isotope::io::detail::reason(error_), path_,
                         "free disk space");
  }

 private:
  event_file() = default;

  isotope::io::detail::descriptor file_{-1};
  std::string path_;
  int error_ = 0;
};

}  // namespace train_program
