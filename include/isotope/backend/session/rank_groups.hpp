#pragma once
/// The groups of ranks that a device belongs to.
#include <string>

#include "../../comm/communicator.hpp"
#include "../../plan/plan.hpp"

namespace isotope {

/// This rank's ends of its two groups. Communicators outlive the sessions that use them. Null: the group has one rank.
struct rank_groups {
  communicator* tensor = nullptr;  // the ranks with this data index
  communicator* data = nullptr;    // the ranks with this tensor index

  device_mesh mesh() const { return {data == nullptr ? 1 : data->ranks(), tensor == nullptr ? 1 : tensor->ranks()}; }
  mesh_position position() const { return {data == nullptr ? 0 : data->rank(), tensor == nullptr ? 0 : tensor->rank()}; }
  communicator* of(rank_group g) const { return g == rank_group::tensor ? tensor : data; }
};

inline std::string text_of(const device_mesh& m) { return "data " + std::to_string(m.data) + ", tensor " + std::to_string(m.tensor); }
/// Checks that a plan is for as many ranks as there are. @error invalid_argument
inline result<void> fits_mesh(const plan_view& p, const device_mesh& there, std::string_view label) {
  if (p.totals.mesh == there || p.steps.empty()) return {};
  return fail(errc::invalid_argument,
              "the plan '" + std::string(label) + "' is for a mesh of " + text_of(p.totals.mesh) + ", the device has joined groups of " +
                  text_of(there),
              "session", "join groups of as many ranks as training_options::mesh says before loading");
}

}  // namespace isotope
