#pragma once
/// A weight in the packed order that the gemm by columns reads, kept across steps: reading it costs its bytes and no shuffles.
#include <atomic>

#include <isotope/kernels/cpu/native/gemm/block_pairs.hpp>
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The packed layout of a bf16 matrix (K, N): a 32-bit word holds rows 2k and 2k + 1 of column j. Panels of `blocking::cols` columns follow one
/// another, each one k after another, so that a block of K is a run of words; zeros pad vectors of columns and the tiles of a matrix unit. A cache
/// line before the panels holds the range of exponents: where it rules out subnormal sums, the gemm need not check them.
class packed_weight {
 public:
  constexpr packed_weight(std::int64_t K, std::int64_t N) : K_(K), N_(N), steps_(whole(K, k_unit) / 2), panels_(N) {}
  constexpr std::int64_t count() const { return panels_.count(); }
  constexpr std::int64_t elements() const { return 2 * (head + panels_.start(panels_.count()) * steps_); }
  /// Returns the index of the word of row k (even) in the first column of the panel that starts at column j.
  constexpr std::int64_t at(std::int64_t k, std::int64_t j) const { return head + j * steps_ + k / 2 * panels_.width(j / blocking::cols); }

  /// Return the range of exponents of the nonzero numbers taken since `forget`; the least is 512 without numbers.
  static int least(const void* packed) { return static_cast<const std::int32_t*>(packed)[0]; }
  static int largest(const void* packed) { return static_cast<const std::int32_t*>(packed)[1]; }
  /// Whether no number is subnormal, infinite or NaN.
  static bool normal(const void* packed) { return least(packed) > 0 && largest(packed) < 255; }
  /// Resets the exponents; call it before rows are taken.
  static void forget(void* packed) {
    static_cast<std::int32_t*>(packed)[0] = exponents{}.least();
    static_cast<std::int32_t*>(packed)[1] = 0;
  }
  /// Merges the exponents of numbers that were taken. Threads may call it concurrently.
  static void note(void* packed, const exponents& found) {
    auto* const noted = static_cast<std::int32_t*>(packed);
    keep(noted[0], found.least(), [](std::int32_t kept, std::int32_t seen) { return seen < kept; });
    keep(noted[1], found.largest(), [](std::int32_t kept, std::int32_t seen) { return seen > kept; });
  }

  /// Packs rows [first, end) of x; first is even, end is even or K. Threads may take different rows; the caller notes what they found.
  /// @param past_caches  uses streaming stores, which the caller has to fence
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
  /// Packs panel p of the transpose of x (N, K) with contiguous rows; the caller notes what it found.
  void take_transposed(const bfloat16* x, std::int64_t p, void* packed, exponents& found) const {
    const std::int64_t j = panels_.start(p), width = panels_.width(p);
    float* const y = static_cast<float*>(packed) + at(0, j);
    pack_pairs(x + j * K_, 1, K_, K_, panels_.elems(p), width, y);
    for (std::int64_t k = divide_up(K_, 2) * width; k < steps_ * width; ++k) y[k] = 0;
    found.take(reinterpret_cast<const bfloat16*>(y), 2 * steps_ * width);
  }
  /// Packs panel p of the transpose of a weight (N, K) in blocks, whose elements are rounded to bf16.
  void take_blocks(const portable::block_weight& w, std::int64_t p, void* packed, exponents& found) const {
    const std::int64_t j = panels_.start(p), width = panels_.width(p);
    float* const y = static_cast<float*>(packed) + at(0, j);
    for (std::int64_t c = 0; c < width; c += quantized::panel_rows)
      block_pairs(w, j + c, smaller(quantized::panel_rows, panels_.elems(p) - c)).take(0, K_, y + c, width);
    found.take(reinterpret_cast<const bfloat16*>(y), 2 * steps_ * width);
  }
  /// Stores a vector of bf16; streaming stores need an address that is a multiple of its size.
  static void put(const words& pairs, bfloat16* to, bool past_caches) {
    vector v;
    __builtin_memcpy(&v, &pairs, sizeof v);
    if (config::has_streams && past_caches) isa::stream_lanes(to, v);
    else __builtin_memcpy(static_cast<void*>(to), &v, sizeof v);
  }

 private:
  static constexpr std::int64_t k_unit = 32, head = 16;  // in terms, in words
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

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
