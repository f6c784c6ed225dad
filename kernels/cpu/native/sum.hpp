#pragma once
/// Bound by bytes. Column sums stay in registers while the rows of a chunk pass, and bf16 is widened there.
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/rows/row_vectors.hpp>
#include <isotope/kernels/cpu/portable/sum.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct row_sums {
  static constexpr int vectors = config::vector_registers / 2;
  static constexpr std::int64_t columns = 2 * vectors * lanes;

  static void add(const view& x, std::int64_t pitch, std::int64_t from, std::int64_t to, std::int64_t c0, std::int64_t n, float* sum) {
    const bool done = with_format({x.type}, [&](auto t) {
      using T = decltype(t);
      const T* rows = x.as<const T>() + from * pitch + c0;
      std::int64_t c = 0;
      for (; c + vectors * lanes <= n; c += vectors * lanes) add<vectors>(rows + c, pitch, to - from, whole_vector{}, sum + c);
      for_vectors(n - c, [&](std::int64_t j, auto amount) { add<1>(rows + c + j, pitch, to - from, amount, sum + c + j); });
    });
    if (!done) portable::plain_row_sums::add(x, pitch, from, to, c0, n, sum);
  }

 private:
  template <int Vectors, class T, class Amount>
  static ISOTOPE_INLINE void add(const T* x, std::int64_t pitch, std::int64_t rows, Amount amount, float* sum) {
    constexpr auto each = std::make_index_sequence<std::size_t(Vectors)>{};
    vector s[Vectors] = {};
    for (std::int64_t r = 0; r < rows; ++r, x += pitch)
      math::unrolled(each, [&](auto v) ISOTOPE_INLINE_LAMBDA { s[v] += load(x + std::int64_t(v) * lanes, amount); });
    math::unrolled(each, [&](auto v) ISOTOPE_INLINE_LAMBDA { store(sum + std::int64_t(v) * lanes, s[v], amount); });
  }
};
static_assert(row_sums::columns <= portable::plain_row_sums::columns);

using sum = portable::sum_by<row_sums>;
using mean = portable::mean_by<row_sums>;

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::sum, P, kernels::native> : native::sum {};
template <NativeProgram P> struct kernel<op::mean, P, kernels::native> : native::mean {};
}  // namespace isotope::cpu
