#pragma once
/// An open file, and the system's message when a call on one fails.
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

namespace isotope::io::detail {

/// Owns a file descriptor; closing reports its error once.
class descriptor {
 public:
  explicit descriptor(int file) : file_(file) {}
  descriptor(descriptor&& from) noexcept : file_(std::exchange(from.file_, -1)) {}
  descriptor& operator=(descriptor&& from) noexcept {
    std::swap(file_, from.file_);
    return *this;
  }
  ~descriptor() { static_cast<void>(close()); }
  int get() const { return file_; }
  int close() { return file_ < 0 ? 0 : ::close(std::exchange(file_, -1)); }

 private:
  int file_;
};

/// Returns errno's text without strerror's shared buffer.
inline std::string reason(int error) {
  const char* text = ::strerrordesc_np(error);
  return text != nullptr ? text : "error " + std::to_string(error);
}

}  // namespace isotope::io::detail
