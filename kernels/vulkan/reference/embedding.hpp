#pragma once
/// Rows of a table by id.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/embedding.hpp>
#include <isotope/shaders/reference_embedding.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::embedding, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &table = l.in[0], &ids = l.in[1], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const struct {
      std::uint64_t table, ids, y;
      std::uint32_t rows, V, C;
    } push{table.at, ids.at, y.at, std::uint32_t(ids.dims.count()), std::uint32_t(table.dims[0]), std::uint32_t(table.dims[1])};
    r.add(shaders::reference_embedding, constants{64, l.device->subgroup}.add(y.type), push, cover(y.dims.count(), 64), {table, ids}, {y});
  }
};

}  // namespace isotope::vulkan
