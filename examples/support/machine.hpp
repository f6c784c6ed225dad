#pragma once
/// The machine as the operating system describes it: for reports, never for decisions.
#include <isotope/io/file.hpp>

#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace support {

struct machine {
  std::string processor = "unknown";
  std::string features;  // instruction sets that kernels may use
  int threads = 0;       // that are online
  std::int64_t memory_bytes = 0;
};

namespace detail {

/// The value of the first line `key : value` of /proc/cpuinfo.
inline std::string cpuinfo(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != line.npos && line.find_last_not_of(" \t", colon - 1) == key.size() - 1)
      return std::string(line.substr(colon + 2));
    at = end + 1;
  }
  return {};
}

}  // namespace detail

inline std::int64_t memory_bytes() {
  struct sysinfo status{};
  return ::sysinfo(&status) == 0 ? std::int64_t(status.totalram) * std::int64_t(status.mem_unit) : 0;
}

inline machine this_machine() {
  machine m;
  m.threads = int(::sysconf(_SC_NPROCESSORS_ONLN));
  m.memory_bytes = memory_bytes();
  // A file of /proc has no size, so it is read like a pipe.
  const auto file = isotope::io::read_file("/proc/cpuinfo");
  if (!file) return m;
  if (const std::string name = detail::cpuinfo(file->text(), "model name"); !name.empty()) m.processor = name;
  const std::string flags = " " + detail::cpuinfo(file->text(), "flags") + " ";
  for (const std::string_view f :
       {"avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8"})
    if (flags.find(" " + std::string(f) + " ") != flags.npos) m.features += (m.features.empty() ? "" : " ") + std::string(f);
  return m;
}

}  // namespace support
