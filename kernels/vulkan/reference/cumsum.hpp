#pragma once
/// Running sums along one axis.
#include <isotope/kernels/vulkan/reference/softmax.hpp>
#include <isotope/op/cumsum.hpp>
#include <isotope/shaders/reference_cumsum.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::cumsum, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const reference::axis_rows a(x.dims, l.constants<op::cumsum>().axis);
    if (a.rows == 0) return;
    const struct {
      std::uint64_t x, y;
      reference::axis_rows a;
    } push{x.at, y.at, a};
    r.add(shaders::reference_cumsum, reference::plain(l).add(x.type).add(y.type).add(l.constants<op::cumsum>().reverse), push,
          reference::per_item(a.rows), {x}, {y});
  }
};

}  // namespace isotope::vulkan
