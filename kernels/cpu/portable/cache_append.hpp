#pragma once
/// Copies rows of keys and values to their places in the caches. Bound by bytes: N rows of G D elements, twice. A task has some heads of one cache and walks all
/// rows in ascending order, so that of rows with one place the last one stays, for any number of threads.
#include <cstring>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>
#include <isotope/op/cache_append.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct cache_append {
  static void run(const launch& l) {
    const op::cache_sizes size(l.out[0].dims);
    const std::int64_t rows = l.in[4].dims[0], bytes = size_of(l.out[0].type);
    const auto *sequence = l.in[4].as<const std::int32_t>(), *position = l.in[5].as<const std::int32_t>();
    for_tasks(l, 2 * size.G, double(2 * rows * size.G) * (10.0 + 0.05 * double(size.D * bytes)), [&](std::int64_t task, int) {
      const std::int64_t g = task / 2;
      const view &from = l.in[std::size_t(2 + task % 2)], &cache = l.out[std::size_t(task % 2)];
      for (std::int64_t n = 0; n < rows; ++n) {
        if (!size.has(sequence[n], position[n])) continue;
        const std::int64_t to = sequence[n] * cache.strides[0] + g * cache.strides[1] + position[n] * cache.strides[2];
        std::memcpy(cache.as<std::byte>() + to * bytes, from.as<const std::byte>() + (n * from.strides[0] + g * size.D) * bytes,
                    std::size_t(size.D * bytes));
      }
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::cache_append, P, kernels::portable> : portable::cache_append {};
}  // namespace isotope::cpu
