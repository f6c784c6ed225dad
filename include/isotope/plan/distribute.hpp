#pragma once
/// Tensor parallelism: divides the weights, and the work on them, between the devices of a tensor group.
#include <cstdint>
#include <string_view>
#include <vector>

#include "../core/tape.hpp"
#include "../op/add.hpp"
#include "../op/all_gather.hpp"
#include "../op/all_reduce.hpp"
#include "../op/cast.hpp"
#include "../op/copy.hpp"
#include "../op/divide.hpp"
#include "../op/fill.hpp"
#include "../op/matmul.hpp"
#include "differentiate.hpp"
#include "options.hpp"
#include "overlap.hpp"

namespace isotope {

namespace plan_detail {

/// Walks over a trace once, in the order of its nodes, and makes of the nodes of all devices together those of one device.
///
/// Parameters are divided as their options say (axis_split). Each op's rule (op_rules::shard) says where the elements of its results are, and its shape rule gives their
/// shapes on one device. A value that is a pending sum is added up by all_reduce where an op first reads it, once.
class distributor {
 public:
  constexpr distributor(tape& t, const training_options& o, std::int64_t multiple)
      : t_(t), mesh_(o.mesh), wide_(o.reduced == reduced_format::accumulation), multiple_(multiple) {}

  /// Returns the value that `result` becomes, with all of its elements.
  constexpr std::int32_t run(std::int32_t result) {
    grow();
    for (auto& p : t_.g.params) divide_parameter(p);
    find_wanted();
    std::vector<node> nodes;
    nodes.swap(t_.g.nodes);
    t_.g.nodes.reserve(nodes.size() + nodes.size() / 4);
    for (auto& n : nodes) {
      if (!t_.ok()) return result;
      if (n.dead) forget(n);
      else place(n);
    }
    for (auto& p : t_.g.params)
      if (p.grad >= 0 && t_.ok()) p.grad = gradient_of(p);
    if (!t_.ok()) return result;
    return whole(current(result));
  }

 private:
  tape& t_;
  device_mesh mesh_;
  bool wide_;  // pending sums are in accumulation format
  std::int64_t multiple_;
  std::vector<spread_value> values_;
  sharding_notes notes_;

  constexpr value& at(std::int32_t v) { return t_.g.values[std::size_t(v)]; }
  constexpr distribution& how(std::int32_t v) { return values_[std::size_t(v)].how; }
  /// What readers of v read.
  constexpr std::int32_t current(std::int32_t v) const {
    while (values_[std::size_t(v)].now != v) v = values_[std::size_t(v)].now;
    return v;
  }
  /// Makes room for values that were recorded.
  constexpr void grow() {
    for (auto v = values_.size(); v < t_.g.values.size(); ++v)
      values_.push_back({{}, t_.g.values[v].dims, t_.g.values[v].type, std::int32_t(v), {}});
  }

  /// Constants to which the gradient of a divided parameter is added are divided like it.
  constexpr void find_wanted() {
    for (const auto& p : t_.g.params)
      if (p.split.divides() && p.grad >= 0) values_[std::size_t(p.grad)].wanted = p.split;
    for (std::size_t i = t_.g.nodes.size(); i-- > 0;) {
      const node& n = t_.g.nodes[i];
      const auto y = n.out[0];
      if (n.dead || y < 0 || !values_[std::size_t(y)].wanted.divides() || (n.op->kind != op_kind::elementwise && n.op->inout != 1))
        continue;
      for (int k = 0; k < n.inputs(); ++k)
        if (const auto x = n.in[std::size_t(k)]; at(x).dims == at(y).dims) values_[std::size_t(x)].wanted = values_[std::size_t(y)].wanted;
    }
  }

  constexpr void divide_parameter(parameter& p) {
    axis_split& s = p.split;
    if (mesh_.tensor == 1) s = {};
    if (!s.divides() || !t_.ok()) return;
    value& v = at(p.value);
    message m;
    if (!s.pads_units(mesh_.tensor)) s.units = 0;
    if (s.padded) {
      const std::int64_t rows = s.size(), least = (rows + mesh_.tensor - 1) / mesh_.tensor;
      s.each = (least + multiple_ - 1) / multiple_ * multiple_;
      if (s.each * (mesh_.tensor - 1) >= rows) s.each = least;
      if (s.each * (mesh_.tensor - 1) >= rows)
        return stop(m << "parameter '" << p.path << "' " << v.dims << ": " << rows << " rows leave a device of tensor " << mesh_.tensor
                      << " without any: choose fewer");
    } else if (const int g = s.uneven_group(mesh_.tensor); g >= 0) {
      return stop(m << "parameter '" << p.path << "' " << v.dims << ": " << s.sizes[std::size_t(g)] << " along axis " << int(s.axis)
                    << " do not divide by tensor " << mesh_.tensor << ": choose a divisor");
    }
    v.dims.set(s.axis, s.local(mesh_.tensor));
    v.strides = dense_strides(v.dims);
    how(p.value) = distribution::divided(s);
  }

  /// Adds up a pending sum, in place.
  constexpr std::int32_t added_up(std::int32_t v) {
    if (!how(v).is_partial()) return v;
    t_.block = at(v).block;
    const auto r =
        t_.record(rules<op::all_reduce>, {&v, 1}, op::collective_constants::of(rank_group::tensor, mesh_), place::current(), 0).out[0];
    const auto y = cast(tensor<tape>{&t_, r}, values_[std::size_t(v)].type).id;
    grow();
    if (!t_.ok()) return v;
    values_[std::size_t(y)].dims = values_[std::size_t(r)].dims = values_[std::size_t(v)].dims;
    values_[std::size_t(v)].now = y;
    return y;
  }
  /// All elements of v on each device.
  constexpr std::int32_t whole(std::int32_t v) {
    v = added_up(v);
    if (!how(v).is_divided()) return v;
    const axis_split s = how(v).along;
    const shape local = at(v).dims;
    message m;
    if (s.groups != 1) {
      stop(m << "the result " << values_[std::size_t(v)].dims << " of the program is divided in groups: return one that is whole");
      return v;
    }
    const auto x = contiguous(tensor<tape>{&t_, v});
    const auto all = apply<op::all_gather>(place::current(), op::collective_constants::of(rank_group::tensor, mesh_), x);  // (p, ...)
    op::permute::constants c;
    for (int i = 0; i < s.axis; ++i) c.order[std::size_t(i)] = i + 1;
    c.order[std::size_t(s.axis)] = 0;
    for (int i = s.axis; i < local.rank; ++i) c.order[std::size_t(i + 1)] = i + 1;
    const auto rows = reshape(apply<op::permute>(place::current(), c, all), local_times(local, s.axis));
    const auto y = contiguous(narrow(rows, s.axis, 0, s.size()));
    grow();
    return y.id;
  }
  constexpr shape local_times(shape s, int axis) const {
    s.set(axis, s[axis] * mesh_.tensor);
    return s;
  }

  constexpr std::int32_t gradient_of(const parameter& p) {
    const auto g = added_up(current(p.grad));
    if (t_.ok() && (how(g).is_divided() != p.split.divides() || (p.split.divides() && !(how(g).along == p.split)))) {
      message m;
      stop(m << "the gradient of '" << p.path << "' " << values_[std::size_t(g)].dims
             << " is not divided between devices as the parameter is: split the layers that read it");
    }
    return g;
  }

  /// Puts a node of all devices together, as one device runs it, at the end of the trace.
  constexpr void place(node n) {
    bool partial = false, all_partial = n.op->adds_up;
    for (int k = 0; k < n.inputs(); ++k) {
      auto& v = n.in[std::size_t(k)];
      v = current(v);
      partial = partial || how(v).is_partial();
      all_partial = all_partial && how(v).is_partial();
    }
    for (int k = 0; k < n.inputs() && partial && !all_partial; ++k) n.in[std::size_t(k)] = added_up(n.in[std::size_t(k)]);
    t_.block = n.block;
    sharding s(t_, n, mesh_, values_, notes_);
    if (partial && all_partial) s.yield(0, distribution::partial());
    else if (n.rules->shard != nullptr) n.rules->shard(s);
    else if (n.op->kind == op_kind::elementwise) op::shard_elementwise(s);
    else if (!s.all_whole()) s.require(false, "it works on whole operands only");
    if (const auto want = n.outputs() > 0 && n.op->constant ? values_[std::size_t(n.out[0])].wanted : axis_split{}; want.divides())
      divide_fill(s, n, want);
    grow();
    if (!t_.ok()) return;
    if (!s.error.empty()) return fail(n, s.error.view());
    if (!pads_with_zeros(n, s))
      return fail(n, "what it gives for heads of zeros, which fill up those of the last device, might not be zero");
    if (n.op->draws(n.attr) && !(s.attr == n.attr) && !counts_globally(n))
      return fail(n, "this target's kernel draws by the elements of one device: use cpu, or no dropout");
    for (int k = 0; k < n.outputs(); ++k) {
      const auto y = n.out[std::size_t(k)];
      if (s.replaced) {
        values_[std::size_t(y)].now = s.given[std::size_t(k)] >= 0 ? s.given[std::size_t(k)] : y;
        if (s.given[std::size_t(k)] < 0) continue;
        values_[std::size_t(s.given[std::size_t(k)])].dims = values_[std::size_t(y)].dims;
        how(s.given[std::size_t(k)]) = s.to[std::size_t(k)];
        values_[std::size_t(s.given[std::size_t(k)])].type = at(s.given[std::size_t(k)]).type;
      } else {
        how(y) = s.to[std::size_t(k)];
      }
    }
    if (s.replaced) return forget(n);
    n.in = s.in;
    n.attr = s.attr;
    infer(n);
    t_.g.nodes.push_back(n);
  }
  /// Whether outputs of n are zero in units that pad an axis, as all operands are.
  static constexpr bool pads_with_zeros(const node& n, const sharding& s) {
    bool pads = false;
    for (int k = 0; k < n.outputs(); ++k) pads = pads || (s.to[std::size_t(k)].is_divided() && s.to[std::size_t(k)].along.units > 0);
    if (!pads || n.op->kind == op_kind::view || n.op->moves) return true;
    if (n.op->constant) return s.attr.scalar() == 0;
    for (int k = 0; n.op == &info<op::add> && k < n.inputs(); ++k)
      if (!s.divided(k)) return false;
    constexpr std::string_view zero_for_zeros[]{"add", "scale", "mul",     "cast",      "copy",           "concat",   "matmul",
                                                "sum", "rope",  "dropout", "attention", "attention_grad", "rms_norm", "rms_norm_grad"};
    for (const auto name : zero_for_zeros)
      if (n.op->name == name) return true;
    return false;
  }
  /// Nothing reads the outputs of n.
  constexpr void forget(const node& n) {
    for (int k = 0; k < n.outputs(); ++k) {
      value& y = at(n.out[std::size_t(k)]);
      y.base = y.producer = -1;
      y.offset = 0;
      y.strides = dense_strides(y.dims);
    }
  }
  static constexpr void divide_fill(sharding& s, const node& n, const axis_split& want) {
    auto c = op::fill::constants::of(n.attr);
    c.dims.set(want.axis, want.local(s.parts()));
    s.attr = c;
    s.yield_divided(0, want);
  }
  constexpr bool counts_globally(const node& n) const {
    for (const auto& k : t_.kernels)
      if (k.op == n.op && k.precision == t_.g.program) return k.counts_all_elements;
    return true;
  }

  /// Gives the outputs of n their shapes on one device.
  constexpr void infer(node& n) {
    const auto id = std::int32_t(t_.g.nodes.size());
    if (wide_ && n.outputs() == 1 && how(n.out[0]).is_partial() && n.op == &info<op::matmul> && at(n.out[0]).base < 0) {
      auto c = op::matmul::constants::of(n.attr);
      c.format = accum_of(t_.program());
      n.attr = c;
    }
    shape_rule r(t_.g, {n.in.data(), std::size_t(n.inputs())}, n.attr);
    n.rules->infer(r);
    if (r.failed()) return fail(n, r.error().view());
    n.attr = r.attr;
    for (int k = 0; k < n.outputs(); ++k) {
      const auto& o = r.out(k);
      const auto id_of = n.out[std::size_t(k)];
      value& y = at(id_of);
      y.producer = id;
      y.dims = o.dims;
      y.type = o.type;
      if (o.view) {
        y.base = n.in[0];
        y.offset = o.offset;
        y.strides = o.strides;
      } else if (((n.op->inout >> k) & 1) != 0 && k < n.inputs()) {
        y.base = n.in[std::size_t(k)];
        y.strides = at(y.base).strides;
      } else {
        y.strides = dense_strides(o.dims);
        if (y.base >= 0) write_into(n, id_of);
      }
    }
  }
  /// A node that writes a part of another value, as the chunks of a head do: what holds for the part holds for the whole.
  constexpr void write_into(const node& n, std::int32_t part) {
    value& y = at(part);
    y.base = current(y.base);
    if (how(part).is_divided() && !(at(y.base).dims == y.dims)) return fail(n, "a part of a divided value is written");
    how(t_.g.root(part)) = how(part);
  }

  // Messages.

  constexpr void stop(const message& m) {
    if (t_.ok()) t_.g.error = m;
  }

  constexpr void fail(const node& n, std::string_view what) {
    message m;
    m << n.op->name << ": " << what << ':';
    for (int k = 0; k < n.inputs(); ++k) {
      const auto v = n.in[std::size_t(k)];
      m << (k != 0 ? " vs " : " ") << values_[std::size_t(v)].dims;
      if (how(v).is_divided()) m << " divided along axis " << int(how(v).along.axis);
    }
    m << ", tensor " << mesh_.tensor;
    if (const auto layer = layer_of(n); !layer.empty()) m << ", in " << layer;
    stop(m);
  }
  /// The path of the parameter that was last read before n, of those that n depends on.
  constexpr std::string_view layer_of(const node& n) const {
    std::vector<std::int32_t> open;
    for (int k = 0; k < n.inputs(); ++k) open.push_back(n.in[std::size_t(k)]);
    for (std::size_t i = 0; i < open.size() && i < 64; ++i) {
      const auto v = open[i];
      for (const auto& p : t_.g.params)
        if (p.value == v) return p.path.view();
      if (const auto by = t_.g.values[std::size_t(v)].producer; by >= 0 && std::size_t(by) < t_.g.nodes.size())
        for (int k = 0; k < t_.g.nodes[std::size_t(by)].inputs(); ++k) open.push_back(t_.g.nodes[std::size_t(by)].in[std::size_t(k)]);
    }
    return {};
  }
};

/// Whether several devices can train with these options; fails if not.
constexpr bool valid_mesh(tape& t, const training_options& o) {
  message m;
  const bool parts = o.mesh.tensor > 1 || (o.zero > 0 && o.mesh.data > 1);
  const std::string_view pieces = "no device has whole matrices and tensors";
  if (o.mesh.data < 1 || o.mesh.tensor < 1)
    m << "a mesh of data " << o.mesh.data << ", tensor " << o.mesh.tensor << ": give at least 1 of each";
  else if (o.zero < 0 || o.zero > 1) m << "zero " << o.zero << ": there is 0, none, and 1, which divides the optimiser's work and memory";
  else if (o.mesh.single()) return true;
  else if (o.update == update_policy::within_backward)
    m << "update_policy::within_backward keeps no gradients for other devices: use after_backward with a mesh";
  else if (parts && o.optimizer == optimizer_kind::muon)
    m << "optimizer_kind::muon with tensor parallelism or ZeRO: " << pieces << ": use adamw";
  else if (parts && o.clip == clipping::tensor_norm)
    m << "clipping::tensor_norm with tensor parallelism or ZeRO: " << pieces << ": use global_norm";
  else if (!t.g.states.empty() || t.g.any_late) m << "a model with states or sizes known late runs on one device: plan it without a mesh";
  if (!m.empty()) t.g.error = m;
  return m.empty();
}

}  // namespace plan_detail

/// Makes of a program of all devices that of one device of the mesh, the same for every rank, by inserting collectives of the tensor group. Runs between differentiation
/// and the optimiser. Returns the value that `result` becomes.
///
/// Each projection that is divided by columns and the one after it, by rows, take one all_reduce forward and one backward; so does a table that is divided by rows,
/// and its use as the head. Rows of the batch are not divided here: a model's shapes are those of one replica.
/// Source: Shoeybi et al. 2019, arXiv:1909.08053, section 3 (Megatron-LM).
///
/// @param multiple  row_multiple of the backend, for the rows of a divided table
/// @error           in the trace: sizes that do not divide, with the layer; an op that cannot work on divided operands
constexpr std::int32_t distribute(tape& t, const training_options& o, std::int32_t result, std::int64_t multiple = 1) {
  if (!t.ok() || !plan_detail::valid_mesh(t, o) || o.mesh.single()) return result;
  t.g.mesh = o.mesh;
  t.g.shards_updates = o.zero > 0 && o.mesh.data > 1;
  t.g.bucket_bytes = o.bucket_bytes;
  t.g.outputs.push_back({name("result"), result});  // so that nothing is divided that no result needs
  prune(t.g);
  t.g.outputs.pop_back();
  const auto block = t.block;
  const auto r = plan_detail::distributor(t, o, multiple).run(result);
  t.block = block;
  if (o.overlap && o.mesh.tensor > 1 && t.ok()) plan_detail::overlap_sums(t.g);
  return r;
}

}  // namespace isotope
