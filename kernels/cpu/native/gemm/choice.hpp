#pragma once
/// The ways to compute a native product: what rules one out, and how long it takes.
#include <array>
#include <string>
#include <string_view>

#include <isotope/kernels/cpu/native/gemm/gemv.hpp>
#include <isotope/kernels/cpu/native/gemm/product_time.hpp>
#include <isotope/plan/choose_kernel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

enum class product_algorithm : std::uint8_t { gemv, pack_right, pack_left, by_columns, by_panels };
struct product_cost {
  double seconds = 0;
};

/// An algorithm, and the size of its tasks. All but gemv add up each element in the same order, so they give the same bits, and so do the tasks of gemv. Sizes alone
/// choose between gemv and the others; what follows from threads, rates or measurements are choices among variants of the same bits.
template <class Operands> struct product_variant {
  using algorithm = product_algorithm;
  algorithm how;
  std::int64_t task_bytes = 0;  // of the right operand, that a task of gemv reads

  constexpr std::string_view unfit(const product_problem& p) const {
    if (how != algorithm::gemv && !p.any_order && sizes_choose_gemv(p)) return "it adds up in another order than gemv, which sizes choose";
    switch (how) {
      case algorithm::gemv:
        if (p.batch_invariant) return "it adds up in another order, and rows are to have the same bits however many there are";
        if (p.s->M > gemv::most_rows) return "it takes at most 4 rows";
        if (!gemv::takes(*p.s)) return "it takes no operands of this form";
        return task_bytes != usual_task && columns_of_task(p) == gemv::columns(*p.s, p.bytes, usual_task) ? "its tasks are those of 64 KB"
                                                                                                          : "";
      case algorithm::pack_right: return "";
      case algorithm::pack_left: return p.columns_lie() ? "" : "the columns of the right operand do not lie in one piece each";
      case algorithm::by_columns:
        if (p.columns_lie()) return "the rows of the right operand do not lie in one piece each";
        return p.s->M <= 2 * blocking::block_rows ? "" : "it has more rows than two blocks";
      case algorithm::by_panels:
        if (!p.columns_lie()) return "the columns of the right operand do not lie in one piece each";
        return p.in_panels && p.s->a_k == 1 && p.s->batches == 1 ? ""
                                                                 : "it takes one pair of f32 operands with contiguous rows on the left";
    }
    return "";
  }
  constexpr product_cost cost_of(const product_problem& p) const {
    switch (how) {
      case algorithm::gemv: return {gemv_seconds(p)};
      case algorithm::pack_right: return {product_time<Operands>(p).by_rows(false)};
      case algorithm::pack_left: return {product_time<Operands>(p).by_rows(true)};
      case algorithm::by_columns: return {product_time<Operands>(p).by_columns()};
      case algorithm::by_panels: return {product_time<Operands>(p).by_panels()};
    }
    return {};
  }
  std::string name(const product_cost&) const {
    switch (how) {
      case algorithm::gemv: return "gemv in tasks of " + std::to_string(task_bytes >> 10) + " KB";
      case algorithm::pack_right: return "gemm, right operand packed";
      case algorithm::pack_left: return "gemm, left operand packed";
      case algorithm::by_columns: return "gemm by columns";
      case algorithm::by_panels: return "gemm by panels";
    }
    return {};
  }
  static constexpr std::int64_t usual_task = 65536;

 private:
  static constexpr bool sizes_choose_gemv(const product_problem& p) {
    return !p.batch_invariant && p.s->M <= gemv::most_rows && gemv::takes(*p.s);
  }
  constexpr std::int64_t columns_of_task(const product_problem& p) const { return gemv::columns(*p.s, p.bytes, task_bytes); }
  /// Reads the right operand once, at 20 GB/s a thread, and multiplies meanwhile. A task costs 0.2 us besides; that sizes of tasks other than the usual one take
  /// 1.02 times as long is an assumption.
  constexpr double gemv_seconds(const product_problem& p) const {
    const double elements = double(p.s->N) * double(p.s->K), bytes = elements * double(p.bytes);
    const std::int64_t tasks = divide_up(p.s->N, columns_of_task(p));
    const std::int64_t parts = bytes * 0.05 < 2 * portable::worth_nsec ? 1 : larger_of(1, smaller(p.threads, tasks));
    const double all = bytes / 20e9 + double(p.s->M) * elements / 60e9 + double(tasks) * 2e-7;
    return double(p.s->batches) * all * product_time<Operands>::share(tasks, parts) * (task_bytes == usual_task ? 1 : 1.02);
  }
};
template <class Operands>
inline constexpr std::array<product_variant<Operands>, 7> product_variants{
    {{product_algorithm::gemv, product_variant<Operands>::usual_task},
     {product_algorithm::gemv, 16384},
     {product_algorithm::gemv, 262144},
     {product_algorithm::pack_right},
     {product_algorithm::pack_left},
     {product_algorithm::by_columns},
     {product_algorithm::by_panels}}};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
