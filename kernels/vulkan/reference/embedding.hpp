#pragma once
/// Looks up rows of a table by id; the gradient adds rows in ascending order.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/embedding.hpp>
#include <isotope/shaders/reference_embedding.hpp>
#include <isotope/shaders/reference_embedding_grad.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::embedding, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &table = l.in[0], &ids = l.in[1], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const struct {
      std::uint64_t table, ids, y;
      std::uint32_t rows, V, C;
    } push{table.at, ids.at, y.at, std::uint32_t(ids.dims.count()), std::uint32_t(table.dims[0]), std::uint32_t(table.dims[1])};
    r.add(shaders::reference_embedding, constants{64, l.device->subgroup}.add(table.type).add(y.type), push,
          per_invocation(y.dims.count(), 64), {table, ids}, {y});
  }
};

template <class P> struct kernel<op::embedding_grad, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &dy = l.in[1], &ids = l.in[2], &into = l.out[0];
    const auto rows = ids.dims.count(), C = into.dims[1];
    if (rows * C == 0) return;
    const struct {
      std::uint64_t into, dy, ids;
      std::uint32_t rows, V, C;
    } push{into.at, dy.at, ids.at, word(rows), word(into.dims[0]), word(C)};
    r.add(shaders::reference_embedding_grad, reference::plain(l).add(into.type).add(dy.type), push, reference::per_item(rows * C),
          {into, dy, ids}, {into});
  }
};

}  // namespace isotope::vulkan
