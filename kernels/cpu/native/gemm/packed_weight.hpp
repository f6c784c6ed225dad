#pragma once
/// A weight in the order in which products by columns read it, kept from step to step: a pass over it costs its bytes and no shuffles.
#include <atomic>

#include <isotope/kernels/cpu/native/gemm/pairs.hpp>
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

/// Of a matrix (K, N) in bf16: the pair of rows 2k and 2k + 1 of column j is a 32-bit word. Panels of `blocking::cols` columns lie one after another,
/// each k after k, so that a block of K is a run of words; zeros beyond the matrix fill up vectors of columns and tiles of a matrix unit. Before
/// them, in a line of its own, the exponents of all numbers: sums of products that those rule small ones out of need not be looked at.
class packed_weight {
 public:
  constexpr packed_weight(std::int64_t K, std::int64_t N) : K_(K), N_(N), steps_(whole(K, k_unit) / 2), panels_(N) {}
  constexpr std::int64_t elements() const { return 2 * (head + panels_.start(panels_.count()) * steps_); }
  /// The word of row k, an even one, in the first column of the panel that column j begins.
  constexpr std::int64_t at(std::int64_t k, std::int64_t j) const { return head + j * steps_ + k / 2 * panels_.width(j / blocking::cols); }

  /// Of the numbers that are not zero, those that were taken since `forget`; 512 without numbers.
  static int least(const void* packed) { return static_cast<const std::int32_t*>(packed)[0]; }
  static int largest(const void* packed) { return static_cast<const std::int32_t*>(packed)[1]; }
  /// Before all rows are taken.
  static void forget(void* packed) {
    static_cast<std::int32_t*>(packed)[0] = exponents{}.least();
    static_cast<std::int32_t*>(packed)[1] = 0;
  }
  /// Of numbers that were taken. Threads may note at the same time.
  static void note(void* packed, const exponents& found) {
    auto* const noted = static_cast<std::int32_t*>(packed);
    keep(noted[0], found.least(), [](std::int32_t kept, std::int32_t seen) { return seen < kept; });
    keep(noted[1], found.largest(), [](std::int32_t kept, std::int32_t seen) { return seen > kept; });
  }

  /// Takes rows [first, end) from x, first an even one, end an even one or K. Threads may take different rows; what they find is to be noted.
  /// @param past_caches  the caller has to fence
  template <class T> void take(const T* x, std::int64_t first, std::int64_t end, void* packed, bool past_caches, exponents& found) const {
    auto* const y = static_cast<bfloat16*>(packed);
    const std::int64_t all = end == K_ ? 2 * steps_ : end;
    for (std::int64_t p = 0; p < panels_.count(); ++p)
      for (std::int64_t k = first; k < all; k += 2)
        for (std::int64_t v = 0; v < panels_.width(p); v += lanes) {
          const std::int64_t j = panels_.start(p) + v, n = smaller(lanes, N_ - j);
          const T* row = x + (k - first) * N_ + j;
          const words pairs = interleave(k < end ? some(row, n) : rounded_vector{}, k + 1 < end ? some(row + N_, n) : rounded_vector{});
          found.take(pairs);
          put(pairs, y + 2 * (at(k, panels_.start(p)) + v), past_caches);
        }
  }
  /// A vector of bf16, past the caches to a multiple of its size.
  static void put(const words& pairs, bfloat16* to, bool past_caches) {
    vector v;
    __builtin_memcpy(&v, &pairs, sizeof v);
    if (config::has_streams && past_caches) ISOTOPE_STREAM_LANES(to, v);
    else __builtin_memcpy(static_cast<void*>(to), &v, sizeof v);
  }

 private:
  static constexpr std::int64_t k_unit = 32, head = 16;  // terms, words
  std::int64_t K_, N_, steps_;
  vector_panels panels_;

  static rounded_vector some(const float* x, std::int64_t n) { return rounded(n == lanes ? load_vector(x) : load_some(x, n)); }
  static rounded_vector some(const bfloat16* x, std::int64_t n) {
    rounded_vector v{};
    if (n == lanes) __builtin_memcpy(&v, x, sizeof v);
    else __builtin_memcpy(&v, x, std::size_t(n) * sizeof *x);
    return v;
  }
  template <class F> static void keep(std::int32_t& noted, std::int32_t seen, const F& better) {
    const std::atomic_ref<std::int32_t> at(noted);
    for (std::int32_t kept = at.load(std::memory_order_relaxed); better(kept, seen);)
      if (at.compare_exchange_weak(kept, seen, std::memory_order_relaxed)) break;
  }
};

}  // namespace native
}  // namespace arch
}  // namespace isotope::cpu
