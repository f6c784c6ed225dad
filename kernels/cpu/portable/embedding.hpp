#pragma once
/// Bound by bytes. The gradient is divided by columns: every task walks all rows in ascending order and owns its columns of the table, so that equal
/// ids add in the same order for any number of threads.
#include <limits>

#include <isotope/core/quantized.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/embedding.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct embedding {
  static constexpr bool reads_blocks = true;
  static constexpr std::int64_t columns = 64;  // converted at a time, where the table has another format

  static void run(const launch& l) {
    const view &table = l.in[0], &y = l.out[0];
    const std::int64_t V = table.dims[0], C = table.dims[1], rows = l.in[1].dims.count(), bytes = C * size_of(table.type);
    const auto* ids = l.in[1].as<const std::int32_t>();
    for_rows(l, rows, double(rows * C) * 0.15, [&](std::int64_t r, int) {
      if (ids[r] >= 0 && ids[r] < V && table.type != y.type) {
        alignas(64) float buffer[columns];
        for (std::int64_t c = 0; c < C; c += columns) {
          const std::int64_t n = smaller(columns, C - c);
          if (in_blocks(table.type)) quantized::read_row(table.type, table.as<const std::byte>(), C, ids[r], c, n, buffer);
          else widen_run(table.data, table.type, ids[r] * C + c, 1, buffer, n);
          narrow_run(buffer, y.data, y.type, r * C + c, n);
        }
      } else if (ids[r] >= 0 && ids[r] < V) {
        std::memcpy(y.as<std::byte>() + r * bytes, table.as<const std::byte>() + ids[r] * bytes, std::size_t(bytes));
      } else {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        for (std::int64_t c = 0; c < C; ++c) narrow_run(&nan, y.data, y.type, r * C + c, 1);
      }
    });
  }
};

struct embedding_grad {
  static constexpr std::int64_t columns = 64;  // four cache lines of a row

  static void run(const launch& l) {
    const view &into = l.out[0], &dy = l.in[1];
    const std::int64_t V = into.dims[0], C = into.dims[1], rows = l.in[2].dims.count();
    const auto* ids = l.in[2].as<const std::int32_t>();
    for_tasks(l, divide_up(C, columns), double(rows * C) * 0.2, [&](std::int64_t t, int) {
      const std::int64_t c0 = t * columns, n = smaller(columns, C - c0);
      alignas(64) float buffer[columns];
      for (std::int64_t r = 0; r < rows; ++r) {
        if (ids[r] < 0 || ids[r] >= V) continue;
        const float* x = dy.as<const float>() + r * C + c0;
        if (dy.type != dtype::f32) {
          widen_run(dy.data, dy.type, r * C + c0, 1, buffer, n);
          x = buffer;
        }
        float* y = into.as<float>() + ids[r] * C + c0;
        ISOTOPE_IVDEP
        for (std::int64_t c = 0; c < n; ++c) y[c] += x[c];
      }
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::embedding, P, kernels::portable> : portable::embedding {};
template <VectorProgram P> struct kernel<op::embedding_grad, P, kernels::portable> : portable::embedding_grad {};
}  // namespace isotope::cpu
