#pragma once
/// The groups of devices of a backend whose memory is the host's: those of the host. A backend with transports of its own has a file of this name in its folder.
#include "../host_groups.hpp"
#include "../machine_settings.hpp"

#include <isotope/comm/mesh.hpp>

#include <memory>
#include <string>
#include <vector>

namespace support {

template <class Device> class device_groups {
 public:
  /// Whether devices of this backend can work together.
  static constexpr bool possible = Device::on_host;

  /// What must be done before the process has threads: nothing.
  /// @param one  the rank of this process, or -1 where all ranks are here. @error missing_feature: a communicator of GPUs is asked for
  static isotope::result<std::unique_ptr<device_groups>> open(const rank_team& team, const host_groups& host, int one) {
    if (!team.communicator.empty())
      return isotope::fail(isotope::errc::missing_feature,
                           "is " + team.communicator + ", and the devices of this build share the host's memory", "mesh.communicator",
                           "leave --communicator out");
    return std::unique_ptr<device_groups>(new device_groups(team, host, one));
  }
  /// How ranks exchange numbers, for reports.
  static std::string communicator(const rank_team& team) { return team.processes() ? "tcp" : "threads"; }
  /// The device of a rank, as device_options::name.
  static std::string device_of(const rank_team&, int, const machine_settings& m) { return m.device; }
  isotope::result<isotope::mesh_communicators> join(int rank, const Device&) { return groups_.join(rank); }

 private:
  isotope::mesh_group<host_group> groups_;
  device_groups(const rank_team& team, const host_groups& host, int one)
      : groups_(team.mesh, [&](const std::string& name, const std::vector<int>& members) { return host.make(name, members); }, one) {}
};

}  // namespace support
