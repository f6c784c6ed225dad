#pragma once
/// The memory of the machine, as the operating system counts it.
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "../../core/device.hpp"
#include "../../core/error.hpp"

namespace isotope::cpu {

/// The bytes of an entry of /proc/meminfo, such as `MemAvailable:   123 kB`; -1: there is none.
inline std::int64_t bytes_of_entry(std::string_view text, std::string_view label) {
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) == text.npos ? text.size() : text.find('\n', at) + 1) {
    std::string_view line = text.substr(at);
    if (!line.starts_with(label) || line.substr(label.size(), 1) != ":") continue;
    line.remove_prefix(label.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::int64_t kib = -1;
    return std::from_chars(line.data(), line.data() + line.size(), kib).ec == std::errc() ? kib * 1024 : -1;
  }
  return -1;
}

/// What processes can still allocate without swapping (MemAvailable), and all of the machine's memory. @error missing_feature where the system does not say
inline result<device_memory> memory_of_system() {
  std::string text(8192, '\0');
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/meminfo", "re"), &std::fclose);
  text.resize(file == nullptr ? 0 : std::fread(text.data(), 1, text.size(), file.get()));
  device_memory m{bytes_of_entry(text, "MemAvailable"), bytes_of_entry(text, "MemTotal")};
#if defined(_SC_PHYS_PAGES) && defined(_SC_AVPHYS_PAGES)
  const auto page = std::int64_t(sysconf(_SC_PAGESIZE));
  if (m.total < 0) m.total = std::int64_t(sysconf(_SC_PHYS_PAGES)) * page;
  if (m.free < 0) m.free = std::int64_t(sysconf(_SC_AVPHYS_PAGES)) * page;
#endif
  if (m.free >= 0 && m.total > 0) return m;
  return fail(errc::missing_feature, "the system does not say how much memory is free", "cpu", "count what the program allocates");
}

}  // namespace isotope::cpu
