#pragma once
/// The variables that NCCL reads, pinned once at the start of main: after that the process has threads, and its environment stays as it is.
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <string>
#include <string_view>

namespace support {

/// Every variable whose name starts with NCCL_, after NCCL_NVLS_ENABLE=0, NCCL_ALGO=Ring and NCCL_PROTO=Simple were set where the user has not set them. What
/// the user has set stays, and isotope::nccl_settings refuses what does not repeat bit for bit. Call it before anything starts a thread.
inline std::map<std::string, std::string> pinned_nccl_environment() {
  constexpr int keep = 0;
  setenv("NCCL_NVLS_ENABLE", "0", keep);
  setenv("NCCL_ALGO", "Ring", keep);
  setenv("NCCL_PROTO", "Simple", keep);
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (text.starts_with("NCCL_") && equals != text.npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

}  // namespace support
