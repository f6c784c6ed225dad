#pragma once
#include <array>

#include "divide.hpp"
#include "fill.hpp"
#include "view.hpp"

namespace isotope {
namespace op {
struct concat {
  using constants = axis_constant;
  static constexpr std::string_view name = "concat";
  static constexpr std::int64_t flops(const step_shapes&) { return 0; }
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr void infer(shape_rule& r) {
    shape y = r.dims(0);
    const std::int64_t given = constants::of(r.attr).axis;
    if (!r.require(given >= 0 && given < y.rank, "the axis is outside the tensors")) return;
    const auto axis = int(given);
    std::int64_t n = 0;
    for (int k = 0; k < r.inputs(); ++k) {
      shape s = r.dims(k);
      if (!r.require(s.rank == y.rank && r.type(k) == r.type(0), "tensors differ in rank or format")) return;
      if (!r.require(!s.late(axis), "the axis has a late size: join along an axis of constant size")) return;
      n += s[axis];
      s.set(axis, y.axis(axis));
      if (!r.require(s == y, "tensors differ outside the axis")) return;
    }
    y.set(axis, n);
    r.yield(y, r.type(0));
  }
  static constexpr void shard(sharding& s) {
    if (s.all_whole()) return;
    const auto axis = int(constants::of(s.attr).axis);
    int like = 0;
    while (!s.divided(like)) ++like;
    axis_split all{.axis = s.along(like).axis, .units = s.along(like).units};
    for (int k = 0; k < s.inputs(); ++k) {
      if (!s.divided(k) && !s.require(divide_constant(s, k, s.along(like)), "some operands are divided and others are whole")) return;
      const axis_split& one = s.along(k);
      const bool joins =
          one.axis == axis && one.axis == all.axis && one.units == all.units && !one.padded && all.groups + one.groups <= max_split_groups;
      if (!s.require(joins || (all.axis != axis && one == s.along(like)), "operands are divided in different ways")) return;
      for (int g = 0; joins && g < one.groups; ++g) all.sizes[std::size_t(all.groups++)] = one.sizes[std::size_t(g)];
    }
    s.yield_divided(0, all.axis == axis ? all : s.along(like));
  }
  static constexpr void gradient(pullback& g) {
    const auto axis = int(constants::of(g.attr).axis);
    std::int64_t first = 0;
    for (int k = 0; k < g.inputs(); ++k) {
      const auto n = g.x(k)[axis];
      if (g.wants(k)) g.give(k, isotope::narrow(g.dy(), axis, first, n));
      first += n;
    }
  }
};
/// Splits an axis into equal parts, which are views of x.
struct split {
  struct constants {
    std::int64_t axis = 0;   // counted from the first
    std::int64_t parts = 1;  // how many
    static constexpr constants of(const attributes& a) { return {.axis = a.i[0], .parts = a.i[1]}; }
    constexpr operator attributes() const { return {.i = {axis, parts}}; }
  };
  static constexpr std::string_view name = "split";
  static constexpr op_kind kind = op_kind::view;
  static constexpr void infer(shape_rule& r) {
    const value& x = r.in(0);
    const auto [axis, parts] = constants::of(r.attr);
    message m;
    if (axis < 0 || axis >= x.dims.rank || parts < 1 || parts > max_outputs || x.dims[int(axis)] % parts != 0) {
      r.fail(m << "axis " << axis << " of " << x.dims << " does not divide into " << parts << " parts (at most " << max_outputs << ')');
      return;
    }
    if (!r.require(!x.dims.late(int(axis)), "the axis has a late size: parts need a constant one")) return;
    shape y = x.dims;
    const auto n = x.dims[int(axis)] / parts;
    y.set(int(axis), n);
    for (std::int64_t k = 0; k < parts; ++k) r.yield_view(y, own_axes, k * n, int(axis));
  }
  static constexpr void shard(sharding& s) {
    if (!s.divided(0)) return;
    const auto [axis, parts] = constants::of(s.attr);
    const std::int64_t n = s.dims(0)[int(axis)] / parts, local = s.local(0)[int(axis)] / parts;
    for (std::int64_t k = 0; k < parts; ++k) {
      if (axis != s.along(0).axis) {
        s.yield(int(k), s.at(0));
        continue;
      }
      const auto part = group_range::of(s.along(0), k * n, n, s.parts());
      if (!s.require(part.along.divides() && part.before == k * local, "the parts are not made of whole groups of the divided axis"))
        return;
      s.yield_divided(int(k), part.along);
    }
  }
  static constexpr void gradient(pullback& g) {
    const auto [axis, parts] = constants::of(g.attr);
    std::array<std::int32_t, max_inputs> in{};
    dtype type = g.y().type();  // of the parts' gradients: those of a parameter are in accumulation format
    for (int k = 0; k < parts; ++k)
      if (g.has_dy(k)) type = g.dy(k).type();
    for (int k = 0; k < parts; ++k) in[std::size_t(k)] = g.has_dy(k) ? g.dy(k).id : isotope::fill(g.machine(), g.y(k).dims(), type).id;
    const concat::constants joined{.axis = axis};
    g.give(0, {&g.machine(), g.machine().apply(rules<concat>, {in.data(), std::size_t(parts)}, joined, place::current()).out[0]});
  }
};
}  // namespace op

/// Concatenates tensors along an axis.
///
/// @param parts  (..., n_k, ...)  1 to 8 tensors
/// @param axis   negative ones count from the end
/// @return       (..., sum of n_k, ...)
/// @error        shapes differ outside the axis, or formats differ
template <Machine M> constexpr tensor<M> concat(std::initializer_list<tensor<M>> parts, int axis, place at = place::current()) {
  std::array<std::int32_t, max_inputs + 1> in{};
  std::size_t n = 0;
  M* machine = nullptr;
  for (const auto& t : parts)
    if (n <= std::size_t(max_inputs)) {
      in[n++] = t.id;
      machine = t.machine;
    }
  const op::concat::constants joined{.axis = axis < 0 && n > 0 ? axis + parts.begin()->rank() : axis};
  return machine == nullptr ? tensor<M>{} : tensor<M>{machine, machine->apply(rules<op::concat>, {in.data(), n}, joined, at).out[0]};
}
/// Splits an axis into N equal parts, which are views of x.
///
/// @param x     (..., N n, ...)
/// @param axis  negative ones count from the end
/// @return      N tensors (..., n, ...)
/// @error       the size of the axis is not a multiple of N
template <int N, Machine M> constexpr std::array<tensor<M>, std::size_t(N)> split(tensor<M> x, int axis = -1, place at = place::current()) {
  static_assert(N >= 1 && N <= max_outputs, "split gives 1 to 6 parts");
  const auto r = apply_op<op::split>(x.machine, {x.id}, op::split::constants{.axis = axis < 0 ? axis + x.rank() : axis, .parts = N}, at);
  std::array<tensor<M>, std::size_t(N)> parts{};
  for (std::size_t k = 0; k < std::size_t(N); ++k) parts[k] = {x.machine, r.out[k]};
  return parts;
}
}  // namespace isotope
