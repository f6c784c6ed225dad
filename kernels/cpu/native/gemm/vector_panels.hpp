#pragma once
/// Divides an axis of a gemm into panels of whole vectors for the microkernel.
#include <isotope/kernels/cpu/native/gemm/blocking.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

constexpr std::int64_t whole(std::int64_t n, std::int64_t unit) { return divide_up(n, unit) * unit; }
/// Returns the largest part when `size` is divided evenly: a multiple of unit, at most `limit` or one unit.
constexpr std::int64_t even_part(std::int64_t size, std::int64_t limit, std::int64_t unit) {
  const std::int64_t most = larger_of(unit, limit / unit * unit);
  return larger_of(unit, whole(divide_up(size, larger_of(1, divide_up(size, most))), unit));
}
static_assert(even_part(512, 256, 12) <= 256);

/// Panels of blocking::vectors vectors; the last one may be narrower.
class vector_panels {
 public:
  explicit constexpr vector_panels(std::int64_t size)
      : size_(size), vectors_(divide_up(size, lanes)), count_(divide_up(vectors_, blocking::vectors)) {}
  constexpr std::int64_t count() const { return count_; }
  /// Returns where panel p begins; start(count()) is the size in whole vectors.
  constexpr std::int64_t start(std::int64_t p) const { return smaller(p * blocking::vectors, vectors_) * lanes; }
  /// Returns the width of panel p in whole vectors.
  constexpr std::int64_t width(std::int64_t p) const { return start(p + 1) - start(p); }
  /// Returns how many elements of the axis panel p has.
  constexpr std::int64_t elems(std::int64_t p) const { return smaller(size_, start(p + 1)) - start(p); }

 private:
  std::int64_t size_, vectors_, count_;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
