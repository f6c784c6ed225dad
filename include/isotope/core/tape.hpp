#pragma once
/// The recorder: applies shape rules, and keeps the graph and the first error as text. It never throws.
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "shape_rule.hpp"
#include "target.hpp"
#include "tensor.hpp"
#include "trace.hpp"

namespace isotope {

class tape;

/// Is notified of each node when it is recorded; `eager` runs it at once.
class node_observer {
 public:
  constexpr virtual void recorded(tape& t, std::int32_t node) = 0;

 protected:
  constexpr ~node_observer() = default;
};

struct untargeted {};

/// A Machine that records. `graph<Target>` and `eager<Target>` derive from it; gradient rules run on it directly.
class tape {
 public:
  using target = untargeted;

  constexpr explicit tape(dtype program) { g.program = program; }

  trace g;
  node_observer* observer = nullptr;
  std::int32_t block = -1;               // the recomputation block that values are recorded in; -1: none
  bool training = true;                  // false: dropout does nothing
  std::span<const kernel_info> kernels;  // of the target, if known: ops without a kernel are decomposed if they can be
  bool decompose_all = false;            // decompose every op that can be decomposed
  bool addends = false;                  // let kernels that take an addend sum gradients: see pullback::give_first

  constexpr dtype program() const { return g.program; }
  constexpr const value& describe(std::int32_t id) const { return g.values[std::size_t(id)]; }
  constexpr bool ok() const { return g.error.empty(); }

  constexpr std::int32_t input(const name& label, const shape& s, dtype t, place at) {
    return declared(g.inputs, value_kind::input, "input", label, s, t, at);
  }
  /// A state, which the model keeps from run to run, zero at first. If it was assigned to before, this is its latest contents.
  constexpr std::int32_t state(const name& label, const shape& s, dtype t, place at) {
    const auto id = declared(g.states, value_kind::state, "state", label, s, t, at);
    return id < 0 ? id : latest(id);
  }
  /// Overwrites a state with x in every run. Ops that read the state after this read the returned value.
  constexpr std::int32_t assign(std::int32_t state, std::int32_t x, place at);
  /// Whether v is a state or the result of an update of one, which `op` may update in place; fails if not.
  constexpr bool keeps(std::int32_t v, const op_info& op, place at);

  constexpr std::int32_t param(const name& path, const shape& s, const param_options& o, place at) {
    if (!ok()) return -1;
    last_path_ = path;
    message m;
    if (path.overflow) {
      fail(m << "parameter name longer than 96 characters: '" << path << "...': shorten a scope", at);
      return -1;
    }
    if (!good_shape(s, path, at)) return -1;
    if (s.has_scalar()) {
      fail(m << "parameter '" << path << "' has a late dimension: " << s << ": give parameters constant sizes", at);
      return -1;
    }
    if (!good_rate(path, o.rate_scale, at)) return -1;
    axis_split split = o.split;
    if (split.divides() && split.axis < s.rank && split.groups == 0) split.groups = 1, split.sizes[0] = s[split.axis];
    if (split.divides() && (split.axis >= s.rank || split.size() != s[split.axis])) {
      fail(m << "parameter '" << path << "' " << s << " is split along axis " << int(split.axis) << " in groups of " << split.size()
             << " together: give the sizes of that axis",
           at);
      return -1;
    }
    const bool decay = o.decay < 0 ? s.rank >= 2 : o.decay != 0;
    for (const auto& p : g.params)
      if (p.path == path) {
        const std::string_view other = describe(p.value).dims != s    ? "shape"
                                       : p.init != o.init             ? "initializer"
                                       : p.decay != decay             ? "decay"
                                       : p.trainable != o.trainable   ? "trainable"
                                       : p.rate_scale != o.rate_scale ? "rate_scale"
                                       : p.muon != o.muon             ? "muon"
                                       : p.split != split             ? "split"
                                                                      : "";
        if (other.empty()) return p.value;
        m << "parameter '" << path << "' is tied with another " << other;
        if (other == "shape") m << ": " << describe(p.value).dims << " vs " << s;
        else m << ": declare it with the same options everywhere";
        fail(m, at);
        return -1;
      }
    const auto id = g.add_value(s, g.program, value_kind::param);
    g.values[std::size_t(id)].wants_gradient = o.trainable;
    parameter p;
    p.path = path;
    p.value = id;
    p.init = o.init;
    p.decay = decay;
    p.trainable = o.trainable;
    p.rate_scale = o.rate_scale;
    p.muon = o.muon;
    p.split = split;
    g.params.push_back(p);
    return id;
  }

  /// Whether a factor on the learning rate is representable in f32; fails with the parameter's name if not.
  constexpr bool good_rate(const name& path, double scale, place at) {
    constexpr double largest = std::numeric_limits<float>::max();
    if (scale >= -largest && scale <= largest) return true;
    message m;
    m << "parameter '" << path << "' has a rate_scale that is " << (scale != scale ? "not a number" : "beyond what f32 holds");
    fail(m << ": give a finite factor", at);
    return false;
  }

  constexpr applied apply(const op_rules& op, std::span<const std::int32_t> in, const attributes& a, place at) {
    return record(op, in, a, at, op.info->draws(a) ? ordinal_++ : 0);
  }

  /// Like `apply`, with a given random stream (ordinal), so that recomputed ops draw the same numbers.
  constexpr applied record(const op_rules& by, std::span<const std::int32_t> given, const attributes& a, place at, std::uint32_t ordinal) {
    if (!ok()) return {};
    const op_info& op = *by.info;
    std::array<std::int32_t, max_inputs> in{-1, -1, -1, -1, -1, -1, -1, -1};
    if (given.size() > std::size_t(max_inputs)) {
      message m;
      fail(m << op.name << ": " << std::int64_t(given.size()) << " operands, at most " << max_inputs, at);
      return {};
    }
    for (std::size_t k = 0; k < given.size(); ++k) {
      if (given[k] < 0) return {};
      in[k] = legal(op.layout, given[k], at);
    }
    const std::span<const std::int32_t> ins(in.data(), given.size());
    for (auto v : ins)
      if (!current(v, at)) return {};
    const bool effect = assigned_state_ >= 0 || updates_state(op, ins);
    shape_rule r(g, ins, a);
    by.infer(r);
    for (int k = 0; k < r.outputs() && !r.failed(); ++k)
      if (const auto fault = r.out(k).dims.fault(); !fault.empty()) {
        message m;
        r.require(false, (m << "the result " << r.out(k).dims << ' ' << fault).view());
      }
    const bool late = may_be_late(r);
    if (late) r.check_views();
    if (r.failed()) {
      message m;
      fail(m << op.name << ": " << r.error(), at);
      return {};
    }
    for (int k = 0; k < r.outputs() && late; ++k)
      if (!one_limit(r.out(k).dims, at)) return {};
    if (by.decompose != nullptr && (decompose_all || !has_kernel(op))) return decomposed(by, ins, r.attr, at);
    node n;
    n.becomes(by);
    n.decomposed = in_decomposition_;
    n.in = in;
    n.attr = r.attr;
    n.block = block;
    n.ordinal = ordinal;
    n.effect = effect;
    bool wants = false;
    for (auto v : ins) wants = wants || describe(v).wants_gradient;
    applied result;
    const auto id = std::int32_t(g.nodes.size());
    for (int k = 0; k < r.outputs(); ++k) {
      const auto& o = r.out(k);
      const auto v = g.add_value(o.dims, o.type, value_kind::temp, late);
      value& y = g.values[std::size_t(v)];
      y.producer = id;
      y.block = block;
      y.wants_gradient = wants && by.gradient != nullptr && is_floating(o.type);
      if (o.view) {
        y.base = in[0];
        y.offset = o.offset;
        y.strides = o.strides;
        if (late) g.values[std::size_t(v)].late = g.add_late(r.late_view(k, g.layout_of(in[0])));
      } else if (assigned_state_ >= 0 || ((op.inout >> k) & 1) != 0) {
        y.base = assigned_state_ >= 0 ? assigned_state_ : in[std::size_t(k)];
        y.strides = describe(y.base).strides;
        y.late = -1;
        if (const auto of_base = describe(y.base).late; of_base >= 0) {
          late_layout same = g.late[std::size_t(of_base)];
          same.offset = {};  // it starts where its base starts
          y.late = g.add_late(same);
        }
      }
      n.out[std::size_t(k)] = v;
      result.out[std::size_t(k)] = v;
    }
    g.nodes.push_back(n);
    if (observer != nullptr) observer->recorded(*this, id);
    return result;
  }

  /// Whether the target's kernel of `op` takes an addend.
  constexpr bool takes_addend(const op_info& op) const {
    for (const auto& k : kernels)
      if (k.op == &op && k.precision == g.program) return k.takes_addend;
    return false;
  }

  /// Keeps the first error: `file:line text in path.`
  constexpr void fail(const message& text, place at) {
    if (!ok()) return;
    message m;
    m << file_of(at) << ':' << std::int64_t(at.line()) << ' ' << text;
    std::string_view p = last_path_.view();
    const auto dot = p.rfind('.');
    if (dot != p.npos) m << " in " << p.substr(0, dot + 1);
    g.error = m;
  }

 private:
  name last_path_;
  std::uint32_t ordinal_ = 0;
  bool in_decomposition_ = false;     // whether a decomposition is being recorded
  std::int32_t assigned_state_ = -1;  // the state that the op being recorded overwrites
  late_sizes limits_ = unlimited();   // of the slots met so far; -1: none

  static constexpr late_sizes unlimited() {
    late_sizes r{};
    for (auto& x : r) x = -1;
    return r;
  }

  /// Declares a value with a name. A name that was declared before gives the same value.
  constexpr std::int32_t declared(std::vector<named_value>& all, value_kind kind, std::string_view what, const name& label, const shape& s,
                                  dtype t, place at) {
    if (!ok()) return -1;
    message m;
    if (label.overflow) {
      fail(m << what << " name longer than 96 characters: '" << label << "...': shorten it", at);
      return -1;
    }
    if (!good_shape(s, label, at) || !one_limit(s, at)) return -1;
    for (const auto& i : all)
      if (i.label == label) {
        const value& v = describe(i.value);
        if (v.dims == s && v.type == t) return i.value;
        fail(m << what << " '" << label << "' is declared twice, as " << v.dims << " and " << s, at);
        return -1;
      }
    const auto id = g.add_value(s, t, kind);
    all.push_back({label, id});
    return id;
  }
  constexpr std::int32_t latest(std::int32_t root) const;
  constexpr bool current(std::int32_t v, place at);
  constexpr bool updates_state(const op_info& op, std::span<const std::int32_t> in) const;

  constexpr bool has_kernel(const op_info& op) const {
    for (const auto& k : kernels)
      if (k.op == &op && k.precision == g.program) return true;
    return kernels.empty();
  }
  constexpr applied decomposed(const op_rules& op, std::span<const std::int32_t> in, const attributes& a, place at);

  constexpr bool good_shape(const shape& s, const name& what, place at) {
    const auto fault = s.fault();
    if (fault.empty()) return true;
    message m;
    fail(m << '\'' << what << "' " << fault << ": " << s, at);
    return false;
  }
  /// Whether operands or results may have late sizes.
  constexpr bool may_be_late(const shape_rule& r) const {
    bool late = g.any_late;
    for (int k = 0; k < r.outputs() && !late; ++k) late = r.out(k).dims.has_scalar();
    return late;
  }
  /// Fails if a slot that has a limit gets another one, or if there is no such slot.
  constexpr bool one_limit(const shape& s, place at) {
    for (int i = 0; i < s.rank; ++i) {
      const dim x = s.axis(i);
      if (x.slot < 0) continue;
      if (x.slot >= late_slots) {
        message m;
        fail(m << s << " has a late dimension whose slot is not 0 to 15: a step has 16 sizes", at);
        return false;
      }
      auto& limit = limits_[std::size_t(x.slot)];
      if (limit < 0) limit = x.size;
      if (limit == x.size) continue;
      message m;
      fail(m << "the late size of slot " << std::int64_t(x.slot) << " has two limits, " << limit << " and " << x.size
             << ": give a slot one limit, and another size another slot",
           at);
      return false;
    }
    return true;
  }
  /// v, or a dense copy of it if an op with this layout cannot read v's strides.
  constexpr std::int32_t legal(operand_layout layout, std::int32_t v, place at);
};

}  // namespace isotope

// These define functions that `record` calls.
#include "decomposition.hpp"
#include "pullback.hpp"
#include "sharding.hpp"
#include "state.hpp"
