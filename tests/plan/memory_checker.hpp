#pragma once
/// An independent check of a plan's memory. It simulates the steps on a shadow arena that records which tensor each byte holds.
#include <isotope/plan/program.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plan_test {

/// Which tensor holds each byte of one region.
class shadow {
 public:
  void write(std::int64_t at, std::int64_t bytes, std::int32_t owner) {
    if (bytes <= 0) return;
    cut(at);
    cut(at + bytes);
    ranges_.erase(ranges_.lower_bound(at), ranges_.lower_bound(at + bytes));
    ranges_[at] = {at + bytes, owner};
  }
  bool holds(std::int64_t at, std::int64_t bytes, std::int32_t owner) const {
    const std::int64_t end = at + bytes;
    auto r = ranges_.upper_bound(at);
    if (r != ranges_.begin()) --r;
    while (at < end) {
      if (r == ranges_.end() || r->first > at || r->second.end <= at || r->second.owner != owner) return false;
      at = r->second.end;
      ++r;
    }
    return true;
  }

 private:
  struct range {
    std::int64_t end;
    std::int32_t owner;
  };
  std::map<std::int64_t, range> ranges_;  // by first byte

  void cut(std::int64_t at) {
    auto r = ranges_.upper_bound(at);
    if (r == ranges_.begin()) return;
    --r;
    if (at >= r->second.end || r->first == at) return;
    ranges_[at] = r->second;
    r->second.end = at;
  }
};

struct memory_facts {
  std::string fault;            // empty: none
  std::int64_t peak_bytes = 0;  // the most temporaries and scratch that are alive at one step, in whole blocks
};

/// Checks the steps of plan `p`, which was made from trace `g`.
class memory_check {
 public:
  memory_check(const isotope::trace& g, const isotope::plan_view& p, std::span<const isotope::kernel_info> table)
      : g_(g), p_(p), table_(table) {}

  /// Faults are: an operand outside its region; an operand whose bytes do not hold the tensor that the graph reads there; an output or scratch that overlaps
  /// an input of the same step, unless the kernel declares that it works in place; parameters that overlap.
  memory_facts run() {
    for (const auto& i : g_.inputs) seed(i.value, p_.inputs[std::size_t(&i - g_.inputs.data())].where);
    for (std::size_t k = 0; k < p_.slots.size(); ++k) check_slot(k);
    std::size_t at = 0;
    for (const auto& n : g_.nodes)
      if (!n.dead && n.op->kind != isotope::op_kind::view) {
        if (at == p_.steps.size()) return fault("fewer steps than nodes"), std::move(facts_);
        follow(n, at++);
      }
    if (at != p_.steps.size()) fault("more steps than nodes");
    for (const auto& o : p_.outputs)
      if (!kept(o.where, g_.outputs[std::size_t(&o - p_.outputs.data())].value)) fault("an output was overwritten");
    measure();
    return std::move(facts_);
  }

 private:
  struct tenancy {
    std::int64_t at, bytes;
    std::size_t first, last;  // the steps between which the tensor is alive
  };
  const isotope::trace& g_;
  const isotope::plan_view& p_;
  std::span<const isotope::kernel_info> table_;
  std::array<shadow, isotope::value_kinds> shadow_;
  std::map<std::int32_t, tenancy> tenants_;  // tensors of the temporary region by owner; scratch of a step has the key -2 - step
  memory_facts facts_;

  void fault(const std::string& what) {
    if (facts_.fault.empty()) facts_.fault = what;
  }
  static std::string at_step(const char* what, std::size_t step, int operand) {
    return std::string(what) + ": step " + std::to_string(step) + ", operand " + std::to_string(operand);
  }
  /// The tensor that v is a view of. In the parameter and gradient regions it is the part of one parameter, not the whole region.
  std::int32_t owner(std::int32_t v) const {
    for (;;) {
      const auto base = g_.values[std::size_t(v)].base;
      if (base < 0) return v;
      const auto& b = g_.values[std::size_t(base)];
      if (b.kind == isotope::value_kind::packed) return base;  // one region for each weight
      if (b.base < 0 && b.producer < 0 && b.dims.rank == 1 && b.kind != isotope::value_kind::temp && b.kind != isotope::value_kind::input)
        return v;
      v = base;
    }
  }
  bool holds(const isotope::operand& o, std::int32_t who) const { return shadow_[std::size_t(o.region)].holds(o.at, o.bytes, who); }
  /// Whether an output holds its tensor, or all parts if several steps write it.
  bool kept(const isotope::operand& o, std::int32_t v) const {
    if (g_.values[std::size_t(v)].producer >= 0) return holds(o, owner(v));
    bool all = o.bytes > 0;
    for (std::size_t k = 0; k < g_.values.size(); ++k)
      if (const auto& part = g_.values[k]; part.base == v) {
        auto x = o;
        x.at += part.offset * isotope::size_of(part.type);
        x.bytes = part.dims.count() * isotope::size_of(part.type);
        all = all && holds(x, std::int32_t(k));
      }
    return all;
  }
  void seed(std::int32_t v, const isotope::operand& o) { shadow_[std::size_t(o.region)].write(o.at, o.bytes, owner(v)); }

  void check_slot(std::size_t k) {
    const auto &s = p_.slots[k], &before = p_.slots[k == 0 ? 0 : k - 1];
    std::int64_t end = 0;
    for (const auto& other : p_.slots)  // slots may be in any order
      if (&other != &s && other.at <= s.at) end = std::max(end, other.at + other.dims.count());
    if (end > s.at || (k > 0 && before.path == s.path)) fault("parameters overlap");
    const auto size = isotope::size_of(p_.totals.program);
    if ((s.at + s.dims.count()) * size > p_.totals.region[std::size_t(isotope::value_kind::param)]) fault("a parameter outside its region");
    shadow_[std::size_t(isotope::value_kind::param)].write(s.at * size, s.dims.count() * size, owner(g_.params[k].value));
    if (s.packed >= 0)
      shadow_[std::size_t(isotope::value_kind::packed)].write(s.packed, g_.values[std::size_t(g_.params[k].packed)].dims.count() * size,
                                                              g_.params[k].packed);
  }

  static bool overlap(const isotope::operand& a, const isotope::operand& b) {
    return a.region == b.region && a.at < b.at + b.bytes && b.at < a.at + a.bytes;
  }
  static bool same_elements(const isotope::operand& a, const isotope::operand& b) {
    return a.at == b.at && a.bytes == b.bytes && a.dims == b.dims && a.strides == b.strides;
  }

  void follow(const isotope::node& n, std::size_t i) {
    const auto& s = p_.steps[i];
    const auto* operands = &p_.operands[std::size_t(s.operands)];
    const isotope::op_info* of_regions[] = {&isotope::info<isotope::op::global_norm>, &isotope::info<isotope::op::clip_value>,
                                            &isotope::info<isotope::op::clip_norm>,   &isotope::info<isotope::op::adamw>,
                                            &isotope::info<isotope::op::sgd>,         &isotope::info<isotope::op::momentum>,
                                            &isotope::info<isotope::op::muon>};
    const bool whole_region = std::find(std::begin(of_regions), std::end(of_regions), n.op) != std::end(of_regions);
    for (int k = 0; k < s.inputs + s.outputs; ++k)
      if (operands[k].at < 0 || operands[k].at + operands[k].bytes > p_.totals.region[std::size_t(operands[k].region)])
        fault(at_step("outside its region", i, k));
    for (int k = 0; k < s.inputs; ++k) {
      const auto& o = operands[k];
      const auto who = owner(n.in[std::size_t(k)]);
      const bool overwritten_first = ((n.op->inout & s.accumulate) >> k & 1) != 0;
      // Only steps write to these regions, never the host.
      const bool stepwise = o.region == isotope::value_kind::output || o.region == isotope::value_kind::temp;
      const bool checked = !overwritten_first && (!whole_region || stepwise);
      if (checked && !holds(o, who)) fault(at_step("reads what another step has overwritten or none has written", i, k));
      if (const auto t = tenants_.find(who); t != tenants_.end()) t->second.last = i;
    }
    const auto& kernel = table_[std::size_t(s.kernel)];
    for (int k = 0; k < s.outputs; ++k) {
      const auto& y = operands[s.inputs + k];
      const bool inout = (n.op->inout >> k & 1) != 0;
      for (int j = 0; j < s.inputs && !inout; ++j)
        if (overlap(operands[j], y) && ((kernel.inplace >> j & 1) == 0 || !same_elements(operands[j], y)))
          fault(at_step("an output over operand", i, j));
      for (int j = 0; j < k; ++j)
        if (overlap(operands[s.inputs + j], y)) fault(at_step("two outputs in one place", i, s.inputs + k));
    }
    if (s.scratch_bytes > 0) {
      isotope::operand scratch;
      scratch.at = s.scratch;
      scratch.bytes = s.scratch_bytes;
      if (s.scratch < 0 || s.scratch + s.scratch_bytes > p_.totals.region[std::size_t(isotope::value_kind::temp)])
        fault(at_step("scratch outside the region", i, -1));
      for (int k = 0; k < s.inputs + s.outputs; ++k)
        if (overlap(scratch, operands[k])) fault(at_step("scratch over operand", i, k));
      shadow_[std::size_t(isotope::value_kind::temp)].write(s.scratch, s.scratch_bytes, -2);
      tenants_[-2 - std::int32_t(i)] = {s.scratch, s.scratch_bytes, i, i};
    }
    for (int k = 0; k < s.outputs; ++k) {
      const auto& y = operands[s.inputs + k];
      const auto who = owner(n.out[std::size_t(k)]);
      shadow_[std::size_t(y.region)].write(y.at, y.bytes, who);
      if (y.region == isotope::value_kind::temp && y.bytes > 0)
        tenants_.emplace(who, tenancy_of(y, who, n.out[std::size_t(k)], i)).first->second.last = i;
    }
  }

  /// A tensor that steps write in parts is there as a whole from the first part on.
  tenancy tenancy_of(const isotope::operand& y, std::int32_t who, std::int32_t v, std::size_t i) const {
    const auto& whole = g_.values[std::size_t(who)];
    if (whole.producer >= 0 || who == v) return {y.at, y.bytes, i, i};
    const auto size = isotope::size_of(whole.type);
    return {y.at - g_.root_offset(v) * size, whole.dims.count() * size, i, i};
  }

  /// Computes the most bytes in use at one step, as a union of ranges, since an output may reuse the memory of an operand of the same step.
  void measure() {
    for (std::size_t i = 0; i < p_.steps.size(); ++i) {
      std::vector<std::pair<std::int64_t, std::int64_t>> used;
      for (const auto& [who, t] : tenants_)
        if (t.first <= i && i <= t.last) used.push_back({t.at, (t.at + t.bytes + 255) / 256 * 256});
      std::sort(used.begin(), used.end());
      std::int64_t bytes = 0, end = 0;
      for (const auto& [from, to] : used) {
        bytes += std::max<std::int64_t>(0, to - std::max(from, end));
        end = std::max(end, to);
      }
      facts_.peak_bytes = std::max(facts_.peak_bytes, bytes);
    }
  }
};

inline memory_facts check_memory(const isotope::trace& g, const isotope::plan_view& p, std::span<const isotope::kernel_info> table) {
  return memory_check(g, p, table).run();
}

}  // namespace plan_test
