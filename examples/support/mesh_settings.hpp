#pragma once
/// On how many devices a program trains, and how their ranks meet.
#include "diagnose_settings.hpp"

#include <isotope/comm/tcp_address.hpp>
#include <isotope/config/reflect.hpp>
#include <isotope/core/mesh.hpp>
#include <isotope/io/json_text.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace support {

struct mesh_settings {
  std::int32_t devices = 1, tensor = 1, zero = 0;
  std::string ranks;  // where processes listen; empty: the ranks are threads of one process
  std::int32_t rank = 0;
  std::string communicator;                        // empty: the backend's own choice
  double step_timeout = 300, abort_deadline = 30;  // seconds

  bool several() const { return devices > 1 || !ranks.empty(); }
  /// Whether this process writes checkpoints and logs: those of the others are the same.
  bool writes() const { return ranks.empty() || rank == 0; }
};

/// What the fields mean, for --help and the table of flags.
inline const std::map<std::string, std::string, std::less<>>& mesh_meanings() {
  static const std::map<std::string, std::string, std::less<>> meanings = {
      {"mesh.devices", "devices that train together; on the processor each is a part of its threads. docs/DEVICES.md"},
      {"mesh.tensor", "devices that share each layer; the rows of a batch are divided between groups of so many"},
      {"mesh.zero", "1: each group keeps and updates a part of the optimizer's state (ZeRO-1), with the same bits; 0: all of it"},
      {"mesh.ranks", "host:port,host:port,...: where the processes of a run listen, one for each device; default: one process"},
      {"mesh.rank", "which of them this process is, counted from 0"},
      {"mesh.communicator", "nccl or direct: how GPUs exchange numbers; direct: by each other's memory; default: direct where they can"},
      {"mesh.step_timeout", "seconds that a step on several devices may take before the run ends"},
      {"mesh.abort_deadline", "seconds after that until the process is ended, if the step still hangs"},
  };
  return meanings;
}

/// @error as parse_addresses; invalid_argument: fewer than two addresses, another number of them than of devices, or no such rank
inline isotope::result<std::vector<isotope::tcp_address>> addresses_of(const mesh_settings& m) {
  using isotope::errc, isotope::fail;
  if (m.ranks.empty()) return std::vector<isotope::tcp_address>{};
  auto at = isotope::parse_addresses(m.ranks);
  if (!at) return at;
  const std::string count = std::to_string(at->size());
  if (at->size() < 2)
    return fail(errc::invalid_argument, "has " + count + " address", "mesh.ranks", "give one for each of two or more devices");
  if (m.devices != 1 && std::size_t(m.devices) != at->size())
    return fail(errc::invalid_argument, "has " + count + " addresses for " + std::to_string(m.devices) + " devices", "mesh.ranks",
                "give one for each device, or leave --devices out");
  if (m.rank < 0 || std::size_t(m.rank) >= at->size())
    return fail(errc::invalid_argument, "is " + std::to_string(m.rank) + ", and there are " + count + " addresses", "mesh.rank",
                "give 0 to " + std::to_string(at->size() - 1));
  return at;
}

inline std::optional<objection> objection_to(const mesh_settings& m) {
  const auto number = [](auto x) { return "is " + std::to_string(x); };
  if (m.devices < 1 || m.devices > 1024) return objection{"mesh.devices", number(m.devices), "give 1 to 1024"};
  if (m.zero < 0 || m.zero > 1) return objection{"mesh.zero", number(m.zero), "give 0, none, or 1"};
  for (const auto& [key, seconds] : {std::pair{"mesh.step_timeout", m.step_timeout}, {"mesh.abort_deadline", m.abort_deadline}})
    if (!(seconds > 0 && seconds <= 1e9))
      return objection{key, "is " + isotope::io::number_text(seconds), "give seconds above 0, up to 1e9"};
  const auto at = addresses_of(m);
  if (!at) return objection{at.error().where == "mesh.rank" ? "mesh.rank" : "mesh.ranks", at.error().what, at.error().fix};
  if (at->empty() && m.rank != 0) return objection{"mesh.rank", number(m.rank) + ", and no processes are named", "give --ranks"};
  const int devices = at->empty() ? m.devices : int(at->size());
  if (!m.communicator.empty() && m.communicator != "nccl" && m.communicator != "direct")
    return objection{"mesh.communicator", "is '" + m.communicator + "'", "give nccl or direct"};
  if (m.communicator == "direct" && !at->empty())
    return objection{"mesh.communicator", "is direct, and processes do not reach each other's memory", "leave --ranks out, or give nccl"};
  if (m.tensor < 1 || devices % m.tensor != 0)
    return objection{"mesh.tensor",
                     number(m.tensor) + ", which does not divide " + std::to_string(devices) + (devices == 1 ? " device" : " devices"),
                     "give a divisor of --devices"};
  if (m.zero == 1 && devices == m.tensor)
    return objection{"mesh.zero",
                     "is 1, and there are no several groups of " + std::to_string(m.tensor) + (m.tensor == 1 ? " device" : " devices"),
                     "raise --devices, or lower --tensor"};
  return std::nullopt;
}

/// The devices of a run. Precondition: no objection
inline isotope::device_mesh mesh_of(const mesh_settings& m) {
  const auto at = addresses_of(m);
  const int devices = at && !at->empty() ? int(at->size()) : m.devices;
  return {devices / m.tensor, m.tensor};
}

}  // namespace support

BOOST_HANA_ADAPT_STRUCT(support::mesh_settings, devices, tensor, zero, ranks, rank, communicator, step_timeout, abort_deadline);
