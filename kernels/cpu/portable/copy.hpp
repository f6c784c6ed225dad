#pragma once
/// Copies and similar ops: bound by bytes. A copy of a contiguous source is a memcpy.
#include <isotope/kernels/cpu/body/block_access.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>
#include <isotope/op/concat.hpp>
#include <isotope/op/copy.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

template <class T> void copy_run(const T* x, std::int64_t stride, T* y, std::int64_t n) {
  if (stride == 1) {
    std::memcpy(y, x, std::size_t(n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
  }
}
/// y[at + i] = x[offset + i stride], for elements of `bytes` bytes.
inline void copy_run(const void* x, std::int64_t offset, std::int64_t stride, void* y, std::int64_t at, std::int64_t n,
                     std::int64_t bytes) {
  const auto typed = [&]<class T>(T) { copy_run(static_cast<const T*>(x) + offset, stride, static_cast<T*>(y) + at, n); };
  switch (bytes) {
    case 1: typed(std::uint8_t{}); break;
    case 2: typed(std::uint16_t{}); break;
    case 4: typed(std::uint32_t{}); break;
    default: typed(std::uint64_t{});
  }
}

struct copy {
  static constexpr std::int64_t task = 1 << 14;

  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = y.dims.count(), bytes = size_of(x.type);
    if (!is_dense(y.dims, y.strides)) return into_strides(l);
    const merged_axes axes(y.dims, {&x, 1});
    for_tasks(l, divide_up(n, task), double(n) * 0.15, [&](std::int64_t t, int) {
      const std::int64_t first = t * task;
      axes.runs(0, first, smaller(task, n - first), [&](std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t length) {
        copy_run(x.data, offset, stride, y.data, first + at, length, bytes);
      });
    });
  }

 private:
  /// A state of late size keeps the strides of its limit.
  static void into_strides(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = y.dims.count(), bytes = size_of(x.type);
    const std::array<view, 2> both{x, y};
    const merged_axes axes(y.dims, both);
    for_tasks(l, divide_up(n, task), double(n) * 0.15, [&](std::int64_t t, int) {
      const std::int64_t first = t * task;
      axes.runs(1, first, smaller(task, n - first), [&](std::int64_t to, std::int64_t step, std::int64_t at, std::int64_t length) {
        axes.runs(0, first + at, length, [&](std::int64_t offset, std::int64_t stride, std::int64_t, std::int64_t) {
          if (step == 1) copy_run(x.data, offset, stride, y.data, to, length, bytes);
          else
            for (std::int64_t i = 0; i < length; ++i) copy_run(x.data, offset + i * stride, 1, y.data, to + i * step, 1, bytes);
        });
      });
    });
  }
};

/// Describes operands placed one after another along an axis of a dense output: each is a run of `inner` elements in each of `outer` rows.
struct placed {
  std::int64_t outer = 1, inner = 1, pitch = 1;
  placed(const shape& x, const shape& y, int axis) {
    for (int i = 0; i < axis; ++i) outer *= y[i];
    for (int i = axis; i < y.rank; ++i) {
      inner *= x[i];
      pitch *= y[i];
    }
  }
  /// y[row pitch + first + i] = x[row inner + i]
  void copy(const launch& l, const view& x, void* y, std::int64_t first) const {
    const merged_axes axes(x.dims, {&x, 1});
    const std::int64_t bytes = size_of(x.type), rows = larger_of(1, (1 << 14) / larger_of(1, inner));
    if (inner == 0) return;
    for_tasks(l, divide_up(outer, rows), double(outer * inner) * 0.15, [&](std::int64_t t, int) {
      for (std::int64_t r = t * rows; r < smaller(outer, (t + 1) * rows); ++r)
        axes.runs(0, r * inner, inner, [&](std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t length) {
          copy_run(x.data, offset, stride, y, r * pitch + first + at, length, bytes);
        });
    });
  }
};

struct concat {
  static void run(const launch& l) {
    const view& y = l.out[0];
    std::int64_t first = 0;
    for (const view& x : l.in) {
      const placed p(x.dims, y.dims, int(l.constants<op::concat>().axis));
      p.copy(l, x, y.data, first);
      first += p.inner;
    }
  }
};

struct pad {
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::pad>();
    const auto axis = int(c.axis);
    const placed p(x.dims, y.dims, axis);
    const std::int64_t bytes = size_of(y.type), unit = x.dims[axis] == 0 ? 0 : p.inner / x.dims[axis];
    const std::int64_t first = c.first * unit;
    for (std::int64_t r = 0; r < p.outer; ++r) {  // the zeros round the range alone
      auto* row = y.as<std::byte>() + r * p.pitch * bytes;
      std::memset(row, 0, std::size_t(first * bytes));
      std::memset(row + (first + p.inner) * bytes, 0, std::size_t((p.pitch - first - p.inner) * bytes));
    }
    p.copy(l, x, y.data, first);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::copy, P, kernels::portable> : portable::copy {};
template <VectorProgram P> struct kernel<op::concat, P, kernels::portable> : portable::concat {};
template <VectorProgram P> struct kernel<op::pad, P, kernels::portable> : portable::pad {};
}  // namespace isotope::cpu
