#pragma once
/// What a program is told of the machine that it runs on.
#include "diagnose_settings.hpp"

#include <isotope/config/reflect.hpp>
#include <isotope/core/gpu_options.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace support {

struct machine_settings {
  std::int32_t threads = 0;
  std::int64_t memory_mib = 0;
  std::string device;
  std::string cache, cache_dir;
  std::string autotune = "cached";
};

/// What the fields mean, for --help and the table of flags.
inline const std::map<std::string, std::string, std::less<>>& machine_meanings() {
  static const std::map<std::string, std::string, std::less<>> meanings = {
      {"machine.threads", "0: as many as the machine has; gpu backends take none"},
      {"machine.memory_mib", "most memory that the plan may need; 0: what the machine has"},
      {"machine.device", "part of a device's name, its index, or cpu, integrated, discrete; default: the fastest"},
      {"machine.cache", "file that keeps compiled gpu pipelines and choices among variants of kernels; default: none"},
      {"machine.cache_dir", "folder for that file, made where it is missing, where --cache names none"},
      {"machine.autotune", "variants of kernels: off (by estimate), cached (as the file says), measure (those that it lacks are timed)"},
  };
  return meanings;
}

inline std::optional<isotope::tuning> tuning_of(std::string_view level) {
  for (std::size_t k = 0; k < isotope::tuning_names.size(); ++k)
    if (isotope::tuning_names[k] == level) return isotope::tuning(k);
  return std::nullopt;
}
inline std::optional<objection> objection_to(const machine_settings& m) {
  if (m.threads < 0 || m.threads > 1024) return objection{"machine.threads", "is " + std::to_string(m.threads), "give 0 to 1024"};
  if (m.memory_mib < 0 || m.memory_mib > (std::int64_t(1) << 40))
    return objection{"machine.memory_mib", "is " + std::to_string(m.memory_mib), "give 0 or more"};
  if (!tuning_of(m.autotune)) return objection{"machine.autotune", "is '" + m.autotune + "'", "give off, cached or measure"};
  return std::nullopt;
}

/// One file serves the programs of all precisions and models: it holds what the driver compiled, by content.
inline std::string cache_file_of(const machine_settings& m) {
  return !m.cache.empty() || m.cache_dir.empty() ? m.cache : m.cache_dir + "/isotope-pipelines";
}

/// A backend takes over what it has; other fields do nothing there.
inline isotope::gpu_options options_of(const machine_settings& m, const diagnose_settings& d) {
  isotope::gpu_options o;
  o.threads = m.threads;
  o.name = m.device;
  o.cache = cache_file_of(m);
  o.autotune = tuning_of(m.autotune).value_or(o.autotune);
  o.diagnose = diagnostics_of(d);
  return o;
}

}  // namespace support

BOOST_HANA_ADAPT_STRUCT(support::machine_settings, threads, memory_mib, device, cache, cache_dir, autotune);
