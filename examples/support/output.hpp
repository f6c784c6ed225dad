#pragma once
/// What a program leaves on stdout, in one piece.
#include <cstdio>
#include <string_view>

namespace support {

inline void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace support
