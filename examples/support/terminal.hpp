#pragma once
/// Whether stdout is a terminal, and how wide it is.
#include <sys/ioctl.h>
#include <unistd.h>

namespace support {

/// Columns of the terminal on stdout, 0 when it is none. 80 when it does not say.
inline int terminal_width() {
  if (::isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace support
