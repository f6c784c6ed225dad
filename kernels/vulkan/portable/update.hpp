#pragma once
/// Accumulation, the gradient norm and the optimisers: dispatches over flat regions, four elements per invocation, bound by bytes.
#include <isotope/kernels/vulkan/reference/update.hpp>
#include <isotope/op/accumulate.hpp>
#include <isotope/op/adamw.hpp>
#include <isotope/op/clip_norm.hpp>
#include <isotope/op/clip_value.hpp>
#include <isotope/op/global_norm.hpp>
#include <isotope/op/sgd.hpp>
#include <isotope/shaders/adamw.hpp>
#include <isotope/shaders/clip_norm.hpp>
#include <isotope/shaders/clip_value.hpp>
#include <isotope/shaders/sgd.hpp>
#include <isotope/shaders/squares.hpp>

#include <isotope/kernels/vulkan/rows/flat.hpp>

namespace isotope::vulkan {
namespace portable {

/// Sums the squares of a tensor in two dispatches and takes the norm.
struct square_sums {
  static constexpr std::int64_t part_elems = 16384;  // 64 per invocation of squares.comp
  static constexpr std::int64_t part_bytes = 12;
  static constexpr std::int64_t scratch(std::int64_t count) { return part_bytes * std::max<std::int64_t>(1, divide_up(count, part_elems)); }
  static constexpr std::int64_t workgroup = 256;

  static void record(const launch& l, recording& r, const view& x, const view& norm) {
    struct push {
      std::uint64_t x, y, scalars;
      std::uint32_t count;
    };
    const std::int64_t count = x.dims.count(), parts = divide_up(count, part_elems);
    static_assert((std::int64_t(1) << 30) % part_elems == 0);  // pieces are whole parts
    in_pieces(count, [&](std::int64_t first, std::int64_t n) {
      const std::int64_t some = divide_up(n, part_elems);
      const std::uint64_t to = l.scratch + std::uint64_t(part_bytes * (first / part_elems));
      r.add(shaders::squares, constants{word(workgroup), l.device->subgroup}.add(x.type).add(false).add(false).add(aligned(x)),
            push{offset(x, first), to, 0, word(n)}, cover(some, 1), {elements(offset(x, first), n, x.type)},
            {range(to, part_bytes * some)});
    });
    std::int64_t together = workgroup;  // a power of two for the tree
    while (2 * together <= std::min<std::int64_t>(1024, l.device->invocations)) together *= 2;
    std::vector<range> reads{scalars_of(l)};
    if (parts > 0) reads.emplace_back(l.scratch, part_bytes * parts);
    r.add(shaders::squares, constants{word(together), l.device->subgroup}.add(x.type).add(true).add(true).add(true),
          push{l.scratch, norm.at, l.scalars, word(parts)}, groups{}, std::move(reads), {norm});
  }
};

/// adamw has two moments, sgd one.
inline void record_optimizer(const launch& l, recording& r, const shader& code, std::size_t moments) {
  const reference::update_operands o(l, moments);
  in_pieces(o.w.dims.count(), [&](std::int64_t first, std::int64_t n) {
    const auto push = o.push(first, n);
    const dtype moment = l.out[1].type;
    std::vector<range> writes{elements(push.w, n, o.w.type), elements(push.m, n, moment)};
    if (moments == 2) writes.push_back(elements(push.v, n, moment));
    std::vector<range> reads = writes;
    reads.insert(reads.end(), {elements(push.g, n, o.g.type), o.norm, o.loss, scalars_of(l)});
    if (o.is.shadow) writes.push_back(elements(push.shadow, n, o.shadow().type));
    r.add(code, o.specialization(flat(l), o.is.clips), push, per_four(n), std::move(reads), std::move(writes));
  });
}

}  // namespace portable

template <class P> struct kernel<op::accumulate, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::accumulate, P>(s); }
  static void record(const launch& l, recording& r) {
    const view &x = l.in[1], &into = l.out[0];
    if (into.dims.count() == 0) return;
    if (!is_dense(x.dims, x.strides) || !is_dense(into.dims, into.strides) || !portable::all_aligned(x, into))
      return portable::fall_through<op::accumulate, P>(l, r, "accumulate: operands are strided");
    portable::record_flat(l, r, x, into, (l.accumulate & 1u) != 0);
  }
};

template <class P> struct kernel<op::global_norm, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::square_sums::scratch(s.in[0].count()); }
  static void record(const launch& l, recording& r) { portable::square_sums::record(l, r, l.in[0], l.out[0]); }
};

template <class P> struct kernel<op::clip_norm, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::square_sums::scratch(s.in[0].count()) + 4, portable::scratch_below<op::clip_norm, P>(s));
  }
  static void record(const launch& l, recording& r) {
    const view& g = l.out[0];
    const std::int64_t count = g.dims.count();
    if (count == 0) return;
    if (!portable::aligned(g)) return portable::fall_through<op::clip_norm, P>(l, r, "clip_norm: the gradient is no whole vectors");
    view norm;
    norm.at = l.scratch + std::uint64_t(portable::square_sums::scratch(count));
    norm.bytes = 4;
    portable::square_sums::record(l, r, g, norm);
    portable::in_pieces(count, [&](std::int64_t first, std::int64_t n) {
      const struct {
        std::uint64_t g, norm, scalars;
        std::uint32_t count;
      } push{portable::offset(g, first), norm.at, l.scalars, portable::word(n)};
      const range part = portable::elements(push.g, n, g.type);
      r.add(shaders::clip_norm, portable::flat(l).add(g.type), push, portable::per_four(n), {part, norm, portable::scalars_of(l)}, {part});
    });
  }
};

template <class P> struct kernel<op::clip_value, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::clip_value, P>(s); }
  static void record(const launch& l, recording& r) {
    const view& g = l.out[0];
    if (!portable::aligned(g)) return portable::fall_through<op::clip_value, P>(l, r, "clip_value: the gradient is no whole vectors");
    portable::in_pieces(g.dims.count(), [&](std::int64_t first, std::int64_t n) {
      const struct {
        std::uint64_t g, scalars;
        std::uint32_t count;
      } push{portable::offset(g, first), l.scalars, portable::word(n)};
      const range part = portable::elements(push.g, n, g.type);
      r.add(shaders::clip_value, portable::flat(l).add(g.type), push, portable::per_four(n), {part, portable::scalars_of(l)}, {part});
    });
  }
};

template <class P> struct kernel<op::adamw, P, kernels::portable> {
  static void record(const launch& l, recording& r) { portable::record_optimizer(l, r, shaders::adamw, 2); }
};

template <class P> struct kernel<op::sgd, P, kernels::portable> {
  static void record(const launch& l, recording& r) { portable::record_optimizer(l, r, shaders::sgd, 1); }
};

}  // namespace isotope::vulkan
