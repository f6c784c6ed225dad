#pragma once
/// The ranks of a mesh as threads of one process or as processes, and the groups by which they meet on the host.
#include "mesh_settings.hpp"

#include <isotope/comm/transport.hpp>
#include <isotope/core/error.hpp>
#include <isotope/core/mesh.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace support {

/// How the ranks of a mesh are spread over processes.
struct rank_team {
  isotope::device_mesh mesh;
  int zero = 0;
  std::vector<isotope::tcp_address> at;  // where processes listen; empty: all ranks are threads of this process
  int rank = 0;                          // of this process, where there are several
  std::string communicator{};            // mesh_settings::communicator

  bool processes() const { return !at.empty(); }
  int here() const { return processes() ? 1 : mesh.ranks(); }
  int first() const { return processes() ? rank : 0; }
  /// For the first lines of a program, such as "2 devices: data 2, tensor 1, zero 0, as threads of this process".
  std::string text() const {
    return std::to_string(mesh.ranks()) + " devices: data " + std::to_string(mesh.data) + ", tensor " + std::to_string(mesh.tensor) +
           ", zero " + std::to_string(zero) +
           (processes() ? ", of which this process is rank " + std::to_string(rank) : ", as threads of this process");
  }
};
/// Precondition: no objection to the settings
inline rank_team team_of(const mesh_settings& m) {
  auto at = addresses_of(m);
  return {mesh_of(m), m.zero, at ? *std::move(at) : std::vector<isotope::tcp_address>{}, m.rank, m.communicator};
}

/// A transport of the host, whichever it is, so that what uses one is compiled once.
class host_group {
 public:
  static constexpr std::string_view name = "host";
  using join_function = std::function<isotope::result<std::unique_ptr<isotope::communicator>>(int rank)>;

  host_group(int ranks, join_function join) : ranks_(ranks), join_(std::move(join)) {}
  int ranks() const { return ranks_; }
  isotope::result<std::unique_ptr<isotope::communicator>> join(int rank) { return join_(rank); }

 private:
  int ranks_;
  join_function join_;
};
static_assert(isotope::Transport<host_group>);

/// Makes the groups of a team. One object serves all ranks of this process.
class host_groups {
 public:
  /// @param run_id           the same on all processes of a run
  /// @param timeout_seconds  how long a rank waits for the others in one operation
  /// @error as tcp_listener::open
  static isotope::result<host_groups> open(const rank_team& team, const std::string& run_id, double timeout_seconds);
  /// @param members  ranks of the mesh, in their order in the group
  std::unique_ptr<host_group> make(const std::string& name, const std::vector<int>& members) const { return make_(name, members); }
  /// Ends groups of threads on every rank, also on those that have not joined. From any thread.
  void abort(const isotope::failure& why) const { abort_(why); }

 private:
  std::function<std::unique_ptr<host_group>(const std::string&, const std::vector<int>&)> make_;
  std::function<void(const isotope::failure&)> abort_;
};

}  // namespace support
