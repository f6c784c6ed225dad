#pragma once
/// A file that grows line by line, and remembers the first write that failed.
#include <isotope/core/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace support {

class line_file {
 public:
  /// @param append  go on after what is there, rather than replace it
  /// @error write_failed: the path and the system's reason
  static isotope::result<line_file> open(const std::string& path, bool append) {
    line_file f;
    f.path_ = path;
    f.file_.reset(std::fopen(path.c_str(), append ? "ae" : "we"));
    if (!f.file_)
      return isotope::fail(isotope::errc::invalid_argument, std::string("cannot write: ") + std::strerror(errno), path,
                           "check the folder and its permissions");
    std::setvbuf(f.file_.get(), nullptr, _IOLBF, 1 << 16);
    return f;
  }

  /// Keeps the first error for `close`; a full disk must not end a training run.
  void write(std::string_view line) {
    if (error_ != 0) return;
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fputc('\n', file_.get()) == EOF) error_ = errno;
  }

  /// @error write_failed: some line is missing
  isotope::result<void> close() {
    if (std::FILE* f = file_.release(); std::fclose(f) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0) return {};
    return isotope::fail(isotope::errc::write_failed, std::string("lines are missing: ") + std::strerror(error_), path_, "free disk space");
  }

 private:
  struct closer {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, closer> file_;
  std::string path_;
  int error_ = 0;
};

}  // namespace support
