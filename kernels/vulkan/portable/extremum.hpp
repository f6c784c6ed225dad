#pragma once
/// Maximum, minimum and argmax of rows, bound by bytes. The reference kernel handles other sets of axes.
#include <isotope/kernels/vulkan/reference/extremum.hpp>
#include <isotope/op/extremum.hpp>
#include <isotope/shaders/row_extremum.hpp>

#include <isotope/kernels/vulkan/rows/reduction.hpp>

namespace isotope::vulkan {
namespace portable {

/// Records one team per row; returns false if the axes do not form rows.
inline bool record_row_extremum(const launch& l, recording& r, std::int64_t mask, bool least, bool place) {
  const view &x = l.in[0], &y = l.out[0];
  const auto s = merged_reduction(x, mask).rows();
  if (!s || !aligned(x) || !loads_as_f32(x.type)) return false;
  const bool wide = s->n % 4 == 0 && s->pitch % 4 == 0;
  const auto t = team::streaming(*l.device, blocks_of_row(s->n, wide), 8);
  const struct {
    std::uint64_t x, y;
    std::uint32_t rows, n, pitch;
  } push{x.at, y.at, word(s->rows), word(s->n), word(s->pitch)};
  r.add(shaders::row_extremum, of_rows(l, t, wide).add(x.type).add(y.type).add(least).add(place), push, t.take(s->rows), {x}, {y})
      .subgroup = l.device->subgroup;
  return true;
}

template <class Op, class P> struct extremum_of {
  static constexpr std::int64_t scratch(const step_shapes& s) { return scratch_below<Op, P>(s); }
  static void record(const launch& l, recording& r) {
    constexpr bool place = std::is_same_v<Op, op::argmax>;
    if (l.out[0].dims.count() == 0) return;
    const std::int64_t mask = place ? std::int64_t(1) << l.constants<op::argmax>().axis : l.constants<op::extremum>().axes;
    if (!record_row_extremum(l, r, mask, std::is_same_v<Op, op::min>, place)) fall_through<Op, P>(l, r, "extremum: the axes are no rows");
  }
};

}  // namespace portable

template <class P> struct kernel<op::max, P, kernels::portable> : portable::extremum_of<op::max, P> {};
template <class P> struct kernel<op::min, P, kernels::portable> : portable::extremum_of<op::min, P> {};
template <class P> struct kernel<op::argmax, P, kernels::portable> : portable::extremum_of<op::argmax, P> {};

}  // namespace isotope::vulkan
