#pragma once
/// Takes elements of rows by index, and adds to them in ascending order.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/take_along.hpp>
#include <isotope/shaders/reference_scatter_add.hpp>
#include <isotope/shaders/reference_take_along.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::take_along, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &x = l.in[0], &index = l.in[1], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const struct {
      std::uint64_t x, index, y;
      std::uint32_t rows, N, K, zeros;
    } push{
        x.at, index.at, y.at, word(n / y.dims[-1]), word(x.dims[-1]), word(y.dims[-1]), std::uint32_t(l.constants<op::take_along>().zeros)};
    r.add(shaders::reference_take_along, reference::plain(l).add(x.type), push, reference::per_item(n), {x, index}, {y});
  }
};

template <class P> struct kernel<op::scatter_add, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &x = l.in[0], &updates = l.in[1], &index = l.in[2], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const struct {
      std::uint64_t x, updates, index, y;
      std::uint32_t rows, N, K;
    } push{x.at, updates.at, index.at, y.at, word(n / y.dims[-1]), word(y.dims[-1]), word(updates.dims[-1])};
    r.add(shaders::reference_scatter_add, reference::plain(l).add(x.type).add(updates.type), push, reference::per_item(n),
          {x, updates, index}, {y});
  }
};

}  // namespace isotope::vulkan
