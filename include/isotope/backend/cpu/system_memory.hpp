#pragma once
/// The memory of the machine, as the operating system counts it.
#include <unistd.h>

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
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : text.size());
    if (!line.starts_with(label) || line.substr(label.size(), 1) != ":") continue;
    std::int64_t kib = -1;
    for (const char c : line.substr(label.size() + 1)) {
      if (c >= '0' && c <= '9') kib = 10 * (kib < 0 ? 0 : kib) + (c - '0');
      else if (c != ' ' || kib >= 0) break;
    }
    return kib < 0 ? -1 : kib * 1024;
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
