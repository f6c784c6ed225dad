#pragma once
/// States, which a model keeps from run to run. A state has one place in memory, and each assignment makes the value that later ops read. A state of late
/// size keeps the strides of its limit: an assignment overwrites the elements within the actual size and leaves the others.
#include <cstdint>

#include "pullback.hpp"
#include "tape.hpp"

namespace isotope {

/// Whether v is a declared state or the result of an assignment to one, and not a view of it.
constexpr bool is_contents(const trace& g, std::int32_t v) {
  const value& x = g.values[std::size_t(v)];
  return x.base < 0 ? x.kind == value_kind::state : x.producer >= 0 && g.nodes[std::size_t(x.producer)].effect;
}
/// The value that holds a state's contents, where its root is that state.
constexpr std::int32_t tape::latest(std::int32_t root) const {
  for (auto v = std::int32_t(g.values.size()); v-- > root + 1;)
    if (is_contents(g, v) && g.root(v) == root) return v;
  return root;
}
/// Whether v has nothing to do with a state, or is a view of the state's latest contents.
constexpr bool tape::current(std::int32_t v, place at) {
  if (g.states.empty() || describe(g.root(v)).kind != value_kind::state) return true;
  while (!is_contents(g, v)) v = describe(v).base;
  if (v == latest(g.root(v))) return true;
  message m;
  for (const auto& s : g.states)
    if (s.value == g.root(v)) m << "state '" << s.label << "' is read as it was before it was assigned to: read what assign returned";
  fail(m, at);
  return false;
}

constexpr bool tape::keeps(std::int32_t v, const op_info& op, place at) {
  if (!ok() || v < 0) return false;
  if (describe(g.root(v)).kind == value_kind::state && is_contents(g, v)) return true;
  message m;
  fail(m << op.name << ": " << describe(v).dims << " is no state: give what scope.state or an update of it gave, not a view of it", at);
  return false;
}
/// Whether the op, applied to these operands, updates a state in place. Such a node is kept even if no op reads its result.
constexpr bool tape::updates_state(const op_info& op, std::span<const std::int32_t> in) const {
  for (std::size_t k = 0; k < in.size(); ++k)
    if (((op.inout >> k) & 1) != 0 && describe(g.root(in[k])).kind == value_kind::state) return true;
  return false;
}

constexpr std::int32_t tape::assign(std::int32_t state, std::int32_t x, place at) {
  if (!ok() || state < 0 || x < 0) return -1;
  const value &to = describe(state), &from = describe(x);
  message m;
  if (describe(g.root(state)).kind != value_kind::state || !is_contents(g, state)) {
    fail(m << "assign: " << to.dims << " is no state: give what scope.state or assign gave, not a view of it", at);
    return -1;
  }
  if (to.dims != from.dims || to.type != from.type) {
    fail(m << "assign: the state is " << to.dims << ' ' << name_of(to.type) << ", the value " << from.dims << ' ' << name_of(from.type)
           << ": they must agree",
         at);
    return -1;
  }
  // A view of the state itself is copied before the state is overwritten.
  if (g.root(x) == g.root(state)) x = record(rules<op::copy>, {&x, 1}, {}, at, 0).out[0];
  assigned_state_ = latest(g.root(state));
  const auto y = record(rules<op::copy>, {&x, 1}, {}, at, 0).out[0];
  assigned_state_ = -1;
  return y;
}

}  // namespace isotope
