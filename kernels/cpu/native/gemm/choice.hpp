#pragma once
/// The ways to compute a native product: what rules one out, and how long it takes.
#include <array>
#include <string>
#include <string_view>

#include <isotope/kernels/cpu/native/gemm/gemv.hpp>
#include <isotope/plan/choose_kernel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// A product and how its operands are multiplied: in f32, in pairs of bf16, or by a matrix unit.
struct product_problem {
  const portable::matmul_shape* s;
  std::int64_t per_step;  // terms of K that a step multiplies
  std::int64_t bytes;     // of an element of the right operand
  bool batch_invariant;   // a row is to have the same bits however many there are

  constexpr bool columns_lie() const { return s->b_k == 1 && s->b_col != 1; }  // in one piece each, those of the right operand
};
struct product_cost {
  double seconds = 0;
};

/// An algorithm, and the size of its tasks. All but gemv add up each element in the same order, so they give the same bits.
struct product_variant {
  enum class algorithm : std::uint8_t { gemv, pack_right, pack_left, by_columns } how;
  std::int64_t task_bytes = 0;  // of the right operand, that a task of gemv reads

  constexpr std::string_view unfit(const product_problem& p) const {
    switch (how) {
      case algorithm::gemv:
        if (p.batch_invariant) return "it adds up in another order, and rows are to have the same bits however many there are";
        if (p.s->M > gemv::most_rows) return "it takes at most 4 rows";
        return gemv::takes(*p.s) ? "" : "it takes no operands of this form";
      case algorithm::pack_right: return "";
      case algorithm::pack_left: return p.columns_lie() ? "" : "the columns of the right operand do not lie in one piece each";
      case algorithm::by_columns:
        if (p.columns_lie()) return "the rows of the right operand do not lie in one piece each";
        return p.s->M <= 2 * blocking::block_rows ? "" : "it has more rows than two blocks";
    }
    return "";
  }
  /// What algorithms of one product differ in, on one thread of a Xeon with AVX-512: they read the right operand at 20 GB/s and multiply at 60 multiply-adds a ns;
  /// a gemm multiplies whole register tiles, and packs or copies an element in 0.3 ns. Transposing an element of a result costs twice as much as packing one of an
  /// operand in f32; in pairs and tiles packing an element of columns in one piece costs three times as much as either. Tasks of gemv that read about 64 KB are far
  /// larger than what distributing them costs, and divide evenly; that other sizes take 1.02 times as long is an assumption.
  constexpr product_cost cost_of(const product_problem& p) const {
    constexpr double read = 1 / 20e9, multiply = 1 / 60e9, pack = 0.3e-9;
    const auto [M, N, K] = std::array{double(p.s->M), double(p.s->N), double(p.s->K)};
    const double bytes = N * K * double(p.bytes) * read, steps = K / double(p.per_step);
    if (how == algorithm::gemv) return {double(p.s->batches) * (bytes + M * N * steps * multiply) * (task_bytes == usual_task ? 1 : 1.02)};
    const auto k = double(p.columns_lie() ? p.s->K / p.per_step : larger_of(1, p.s->K / p.per_step));
    const double rows = double(divide_up(p.s->M, blocking::rows) * blocking::rows);
    const double packed = how == algorithm::pack_left    ? M * (k + (p.per_step == 1 ? 2 : 1) * N)
                          : how == algorithm::by_columns ? M * k
                                                         : (p.columns_lie() && p.per_step > 1 ? 3 : 1) * N * k;
    return {double(p.s->batches) * (bytes + rows * N * steps * multiply + packed * pack)};
  }
  std::string name(const product_cost&) const {
    switch (how) {
      case algorithm::gemv: return "gemv in tasks of " + std::to_string(task_bytes >> 10) + " KB";
      case algorithm::pack_right: return "gemm, right operand packed";
      case algorithm::pack_left: return "gemm, left operand packed";
      case algorithm::by_columns: return "gemm by columns";
    }
    return {};
  }
  static constexpr std::int64_t usual_task = 65536;
};
inline constexpr std::array<product_variant, 6> product_variants{{{product_variant::algorithm::gemv, product_variant::usual_task},
                                                                  {product_variant::algorithm::gemv, 16384},
                                                                  {product_variant::algorithm::gemv, 262144},
                                                                  {product_variant::algorithm::pack_right},
                                                                  {product_variant::algorithm::pack_left},
                                                                  {product_variant::algorithm::by_columns}}};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
