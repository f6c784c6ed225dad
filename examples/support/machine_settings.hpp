#pragma once
/// What a program is told of the machine that it runs on.
#include <isotope/config/reflect.hpp>
#include <isotope/core/device.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace support {

struct machine_settings {
  std::int32_t threads = 0;     // 0: as many as the machine has
  std::int64_t memory_mib = 0;  // most that a plan may need; 0: what the machine has
  std::string device;           // part of a name, an index or a kind; empty: the fastest
  std::string cache;            // file for compiled pipelines; empty: none
};

/// What the fields mean, for --help.
inline const std::map<std::string, std::string, std::less<>>& machine_meanings() {
  static const std::map<std::string, std::string, std::less<>> meanings = {
      {"machine.threads", "0: as many as the machine has"},
      {"machine.memory_mib", "most memory that the plan may need; 0: what the machine has"},
      {"machine.device", "part of a device's name, its index, or cpu, integrated, discrete; default: the fastest"},
      {"machine.cache", "file that keeps compiled gpu pipelines; default: none"},
  };
  return meanings;
}

inline isotope::device_options options_of(const machine_settings& m) {
  isotope::device_options o;
  o.threads = m.threads;
  o.name = m.device;
  o.cache = m.cache;
  return o;
}

}  // namespace support

BOOST_HANA_ADAPT_STRUCT(support::machine_settings, threads, memory_mib, device, cache);
