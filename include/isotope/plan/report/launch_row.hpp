#pragma once
/// The launches of a run as reports and conformance see them, on every backend.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "../choose_kernel.hpp"
#include "../plan.hpp"

namespace isotope {

/// One launch of a run, as reports and conformance see it.
struct launch_row {
  std::int32_t step = -1;                           // of the plan; -1: the copy of the outputs to the host
  std::int32_t joined = -1;                         // another step that this launch does, too; -1: none
  std::vector<std::int32_t> also = {};              // further ones
  std::string_view set, reason = {};                // the kernel set that runs; why not a better one, where the kernel knows
  std::vector<considered_variant> considered = {};  // the variants among which the kernel was chosen
  std::string_view code = {};                       // shader or device function; empty: kernels have no names of their own
  std::array<std::uint32_t, 3> groups{};            // workgroups; 0: the device has none
  std::uint32_t invocations = 0;                    // of each workgroup
  std::uint32_t subgroup = 0;                       // required size; 0: any
  std::int64_t bytes = 0;                           // in the ranges read and written
  std::string_view matrices = {};                   // formats that matrix units take; empty: they are not used
  float oscillation = -1;                           // of the step's weight; -1: it has no score
  std::vector<std::int32_t> launch_sizes = {};      // invocations in a whole sweep
  std::span<const std::uint32_t> words = {};        // of the code, where it is made of words
};

/// The launches of the active phases of a plan whose kernels are chosen by the planner alone.
inline std::vector<launch_row> planned_rows(const plan_view& p, std::span<const kernel_info> table,
                                            std::uint8_t active = phase_first | phase_last) {
  std::vector<launch_row> all;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const step& s = p.steps[i];
    if (s.kernel < 0 || (s.phases & active) == 0) continue;
    launch_row l{.step = std::int32_t(i), .set = table[std::size_t(s.kernel)].set};
    for (int k = 0; k < s.inputs + s.outputs; ++k) l.bytes += p.operands[std::size_t(s.operands + k)].bytes;
    all.push_back(l);
  }
  return all;
}

}  // namespace isotope
