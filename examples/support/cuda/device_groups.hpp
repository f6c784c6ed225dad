#pragma once
/// The groups of NVIDIA GPUs, by NCCL or by each other's memory, beside groups of the host, by which the ranks meet.
#include "../host_groups.hpp"
#include "../machine_settings.hpp"
#include "../nccl_environment.hpp"

#include <isotope/comm/cuda/direct_group.hpp>
#include <isotope/comm/cuda/nccl_group.hpp>
#include <isotope/comm/mesh.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace support {

template <class Device> class device_groups {
 public:
  static constexpr bool possible = true;

  /// Called before the process has threads, since it sets variables that NCCL reads. @error as nccl_settings::from and nccl::library::open
  static isotope::result<std::unique_ptr<device_groups>> open(const rank_team& team, const host_groups& host, int one) {
    std::unique_ptr<device_groups> g(new device_groups);
    g->devices_.resize(std::size_t(team.mesh.ranks()));
    const auto environment = pinned_nccl_environment();
    if (communicator(team) == isotope::direct_communicator::name) {
      g->template make_groups<isotope::direct_group<host_group>>(team, host, one, isotope::direct_options{});
      return g;
    }
    auto settings = isotope::nccl_settings::from(environment);
    if (!settings) return settings.error();
    auto library = isotope::nccl::library::open({});
    if (!library) return library.error();
    g->template make_groups<isotope::nccl_group<host_group>>(team, host, one,
                                                             isotope::nccl_options{*std::move(library), *std::move(settings)});
    return g;
  }
  /// How ranks exchange numbers: as the user says, or else directly where the GPUs of one process reach each other's memory, and by NCCL elsewhere.
  static std::string communicator(const rank_team& team) {
    if (!team.communicator.empty()) return team.communicator;
    const auto driver = isotope::cuda::driver::open({});
    const bool direct = !team.processes() && driver && team.mesh.ranks() <= isotope::cuda::gpu::most_exchange_ranks &&
                        isotope::reach_each_other(**driver, team.mesh.ranks());
    return std::string(direct ? isotope::direct_communicator::name : isotope::nccl_communicator::name);
  }
  /// Rank r has GPU r; of a process of its own --device names it, or else its rank modulo the number of GPUs that it sees.
  static std::string device_of(const rank_team& team, int rank, const machine_settings& m) {
    if (!team.processes()) return std::to_string(rank);
    if (!m.device.empty()) return m.device;
    return std::to_string(rank % std::max(1, int(isotope::selected::backend::devices().size())));
  }
  isotope::result<isotope::mesh_communicators> join(int rank, const Device& d) {
    const auto& c = d.shared();
    devices_[std::size_t(rank)] = {c->library(), c->handle(), c->stream()};
    return join_(rank);
  }

 private:
  std::vector<isotope::gpu_of_rank> devices_;
  std::function<isotope::result<isotope::mesh_communicators>(int rank)> join_;
  device_groups() = default;

  template <class Group, class Options> void make_groups(const rank_team& team, const host_groups& host, int one, const Options& options) {
    const auto make = [&](const std::string& name, const std::vector<int>& members) {
      return std::make_unique<Group>(host.make(name, members), options,
                                     [devices = devices_.data(), members](int rank) { return devices[members[std::size_t(rank)]]; });
    };
    const auto groups = std::make_shared<isotope::mesh_group<Group>>(team.mesh, make, one);
    join_ = [groups](int rank) { return groups->join(rank); };
  }
};

}  // namespace support
