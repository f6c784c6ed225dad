#pragma once
/// Turns a plan bound to addresses into a list of dispatches, without using a device.
#include <array>
#include <string>
#include <vector>

#include "../../plan/late.hpp"
#include "../queue/arena_layout.hpp"
#include "../queue/operand_places.hpp"
#include "launch.hpp"
#include "table.hpp"
#include "weight_scores.hpp"

namespace isotope::vulkan {

/// The kernels of a target: the planner's table, and the functions that record them.
struct kernel_set {
  std::span<const kernel_info> table;
  std::span<const record_function> code;
  std::span<const spirv::custom_instruction> custom = {};
  std::span<const pair_function> pairs = {};  // empty: each step is recorded for itself
};

/// An operand of a plan at its address.
inline view bind(const operand& o, const region_addresses& base) {
  return {base.at[std::size_t(o.region)] + std::uint64_t(o.at), o.bytes, o.dims, o.strides, o.type};
}

/// A step of a plan that is bound to addresses.
class bound_step {
 public:
  std::vector<view> views;
  launch given;

  bound_step(const plan_view& p, const step& s, late_resolver& late, const region_addresses& base, std::uint8_t active,
             const step_recording& how) {
    for (int k = 0; k < s.inputs + s.outputs; ++k) views.push_back(bind(late.at(p.operands[std::size_t(s.operands + k)]), base));
    given.in = std::span<const view>(views.data(), s.inputs);
    given.out = std::span<const view>(views.data() + s.inputs, s.results());
    given.summed = s.summed;
    given.column_sums = s.summed < 0 ? nullptr : &views.back();
    given.attr = &s.attr;
    given.body = p.micro_ops.subspan(std::size_t(s.body), s.body_size);
    given.scratch = s.scratch < 0 ? 0 : base.at[std::size_t(value_kind::temp)] + std::uint64_t(s.scratch);
    given.scratch_bytes = s.scratch < 0 ? 0 : s.scratch_bytes;
    how.move(std::span<view>(views), s.inputs, given.scratch, given.scratch_bytes);
    given.scalars = base.scalars;
    given.ordinal = s.ordinal;
    given.accumulate = s.added(active);
  }
  bound_step(bound_step&&) = default;
  bound_step& operator=(bound_step&&) = default;
};

/// Bit k: result k of step `i` is read after step `last`, by another step or by whoever runs the plan.
inline std::uint32_t read_after(const plan_view& p, std::size_t i, std::size_t last) {
  const step& s = p.steps[i];
  std::uint32_t bits = 0;
  for (int k = 0; k < s.outputs; ++k) {
    const operand& result = p.operands[std::size_t(s.operands + s.inputs + k)];
    const byte_range bytes(std::uint64_t(result.at), result.bytes);
    const auto shares = [&](const operand& o) {
      return o.region == result.region && bytes.overlaps(byte_range(std::uint64_t(o.at), o.bytes));
    };
    bool read = result.region != value_kind::temp, written = false;
    for (std::size_t j = last; j < p.steps.size() && !read && !written; ++j) {
      const step& t = p.steps[j];
      for (int o = 0; o < t.inputs && j != last; ++o) read = read || shares(p.operands[std::size_t(t.operands + o)]);
      for (int o = t.inputs; o < t.inputs + t.outputs; ++o)
        written = written || ((t.phases & s.phases) == s.phases && shares(p.operands[std::size_t(t.operands + o)]));
    }
    if (read) bits |= 1u << k;
  }
  return bits;
}

/// The dispatches of all steps that belong to an active phase, in order. Those of two steps that a kernel records together have the number of the second.
inline std::vector<dispatch> record(const plan_view& p, const kernel_set& kernels, const region_addresses& base,
                                    const std::array<std::int32_t, 16>& sizes, const device_limits& device, std::uint8_t active,
                                    constant_store& const_pool, shader_store& shaders, const weight_scores* scores = nullptr,
                                    const step_recording& how = {}) {
  recording r(const_pool, shaders);
  r.know(how.known);
  r.launch_size = device.switches.launch_size;
  r.want(device.switches.variant);
  late_resolver late(p);
  late.set(sizes);
  const auto after = [&](std::size_t i) {  // the next step of an active phase
    while (i < p.steps.size() && ((p.steps[i].phases & active) == 0 || (how.only >= 0 && how.only != std::int32_t(i)))) ++i;
    return i;
  };
  const auto bound = [&](std::size_t i) {
    const step& s = p.steps[i];
    bound_step b(p, s, late, base, active, how);
    b.given.device = &device;
    b.given.custom = kernels.custom;
    b.given.oscillation = scores == nullptr || s.inputs < 2 ? -1.0f : scores->of(p.operands[std::size_t(s.operands + 1)]);
    return b;
  };
  for (std::size_t i = after(0); i < p.steps.size(); i = after(i + 1)) {
    bound_step now = bound(i);
    const std::size_t next = after(i + 1);
    if (const auto together =
            next == p.steps.size() || kernels.pairs.empty() ? nullptr : kernels.pairs[std::size_t(p.steps[next].kernel)]) {
      const bound_step then = bound(next);
      r.oscillation = then.given.oscillation;
      r.step = std::int32_t(next), r.joined = std::int32_t(i);
      r.begin_step(*p.steps[next].op, then.given);
      if (together({*p.steps[i].op, kernels.code[std::size_t(p.steps[i].kernel)], now.given, read_after(p, i, next)}, then.given, r)) {
        i = next;
        continue;
      }
    }
    r.oscillation = now.given.oscillation;
    r.step = std::int32_t(i), r.joined = -1;
    r.begin_step(*p.steps[i].op, now.given);
    enter_set(r, kernels.table[std::size_t(p.steps[i].kernel)].set);
    kernels.code[std::size_t(p.steps[i].kernel)](now.given, r);
  }
  return std::move(r.dispatches);
}

}  // namespace isotope::vulkan
