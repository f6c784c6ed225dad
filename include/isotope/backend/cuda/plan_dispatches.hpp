#pragma once
/// Turns a plan bound to addresses into a list of dispatches, without using a device.
#include <array>
#include <span>
#include <vector>

#include "../../plan/late.hpp"
#include "../queue/arena_layout.hpp"
#include "../queue/operand_places.hpp"
#include "launch.hpp"
#include "table.hpp"

namespace isotope::cuda {

/// The kernels of a target: the planner's table, and the functions that record them.
struct kernel_set {
  std::span<const kernel_info> table;
  std::span<const record_function> code;
  std::span<const ptx::custom_instruction> custom = {};
};

/// An operand of a plan at its address.
inline view bind(const operand& o, const region_addresses& base) {
  return {base.at[std::size_t(o.region)] + std::uint64_t(o.at), o.bytes, o.dims, o.strides, o.type};
}

/// The dispatches of all steps that belong to an active phase, in order.
inline std::vector<dispatch> record(const plan_view& p, const kernel_set& kernels, const region_addresses& base,
                                    const std::array<std::int32_t, 16>& sizes, const device_limits& device, std::uint8_t active,
                                    constant_store& constants, code_store& code, const step_recording& how = {}) {
  recording r(constants, code);
  r.know(how.known);
  r.launch_size = device.switches.launch_size;
  r.want(device.switches.variant);
  late_resolver late(p);
  late.set(sizes);
  std::vector<view> views;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const step& s = p.steps[i];
    if ((s.phases & active) == 0 || (how.only >= 0 && how.only != std::int32_t(i))) continue;
    views.clear();
    for (int k = 0; k < s.inputs + s.outputs; ++k) views.push_back(bind(late.at(p.operands[std::size_t(s.operands + k)]), base));
    launch l;
    l.in = std::span<const view>(views.data(), s.inputs);
    l.out = std::span<const view>(views.data() + s.inputs, s.results());
    l.summed = s.summed;
    l.column_sums = s.summed < 0 ? nullptr : &views.back();
    l.attr = &s.attr;
    l.body = p.micro_ops.subspan(std::size_t(s.body), s.body_size);
    l.scratch = s.scratch < 0 ? 0 : base.at[std::size_t(value_kind::temp)] + std::uint64_t(s.scratch);
    l.scratch_bytes = s.scratch < 0 ? 0 : s.scratch_bytes;
    how.move(std::span<view>(views), s.inputs, l.scratch, l.scratch_bytes);
    l.scalars = base.scalars;
    l.ordinal = s.ordinal;
    l.accumulate = s.added(active);
    l.device = &device;
    l.custom = kernels.custom;
    r.step = std::int32_t(i);
    r.begin_step(*s.op, l);
    enter_set(r, kernels.table[std::size_t(s.kernel)].set);
    kernels.code[std::size_t(s.kernel)](l, r);
  }
  return std::move(r.dispatches);
}

}  // namespace isotope::cuda
