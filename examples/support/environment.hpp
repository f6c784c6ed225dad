#pragma once
/// The process environment, read once at the start of main: everything after works on this copy.
#include <unistd.h>

#include <map>
#include <string>
#include <string_view>

namespace support {

/// Every variable whose name starts with ISOTOPE_.
inline std::map<std::string, std::string> captured_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (text.starts_with("ISOTOPE_") && equals != text.npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

}  // namespace support
