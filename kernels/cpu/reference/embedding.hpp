#pragma once
/// Looks up rows of a table by id; the gradient adds rows in ascending order.
#include <limits>

#include <isotope/op/embedding.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::embedding, P, kernels::reference> {
  static constexpr bool reads_blocks = true;
  static void run(const launch& l) {
    const view &table = l.in[0], &ids = l.in[1], &y = l.out[0];
    for (reference::index row(ids.dims); row.valid(); row.next()) {
      const std::int64_t id = ids.as<const std::int32_t>()[row.in(ids.strides)];
      const bool known = id >= 0 && id < table.dims[0];
      for (std::int64_t c = 0; c < table.dims[1]; ++c)
        reference::store(
            y, row.in(y.strides) + c * reference::last_stride(y),
            known ? reference::load(table, id * table.strides[0] + c * table.strides[1]) : std::numeric_limits<double>::quiet_NaN());
    }
  }
};

template <class P> struct kernel<op::embedding_grad, P, kernels::reference> {
  static void run(const launch& l) {
    const view &dy = l.in[1], &ids = l.in[2], &into = l.out[0];
    for (reference::index row(ids.dims); row.valid(); row.next()) {
      const std::int64_t id = ids.as<const std::int32_t>()[row.in(ids.strides)];
      if (id < 0 || id >= into.dims[0]) continue;
      for (std::int64_t c = 0; c < into.dims[1]; ++c) {
        const auto to = id * into.strides[0] + c * into.strides[1];
        reference::store(into, to, reference::load(into, to) + reference::load(dy, row.in(dy.strides) + c * reference::last_stride(dy)));
      }
    }
  }
};

}  // namespace isotope::cpu
