#pragma once
/// What the gradients of layer_norm and rms_norm share: each chunk of rows sums dweight and dbias by itself, then the chunks are added in order.
#include <cstring>

#include <isotope/kernels/cpu/native/rows/row_groups.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The operands of a group of rows of C elements.
template <class T> struct norm_grad_rows {
  const T *x, *dy, *addend;  // addend: null for none
  T* dx;
  const float *mean, *rstd, *weight;  // mean: null where none was subtracted
  std::int64_t C;
  norm_grad_rows at(std::int64_t r) const {
    return {x + r * C, dy + r * C, addend == nullptr ? addend : addend + r * C, dx + r * C, mean == nullptr ? mean : mean + r, rstd + r,
            weight,    C};
  }
};

/// `Own::group<Rows>(rows, sums)` makes dx of some rows and adds to `Sums` times C sums: dweight, then dbias. `Own::nsec(C)`: the cost of a row.
/// Operands are x, weight, [bias, means,] rstds, dy [, addend]; bias and means if there are two sums.
template <class Own, class Portable, int Sums> struct norm_grad {
  static constexpr std::uint32_t inplace = Portable::inplace;
  static constexpr bool takes_addend = Portable::takes_addend;

  static constexpr std::int64_t scratch(const step_shapes& s) { return Portable::scratch(s); }
  static void run(const launch& l) {
    if (!with_format({l.in[0].type, l.in[dy].type, l.out[0].type, l.in[has_addend(l) ? dy + 1 : 0].type},
                     [&](auto t) { run_on<decltype(t)>(l); }))
      Portable::run(l);
  }

 private:
  friend Own;
  norm_grad() = default;

  static constexpr std::size_t dy = Sums == 2 ? 5 : 3;
  static bool has_addend(const launch& l) { return l.in.size() > dy + 1; }

  template <class T> static void run_on(const launch& l) {
    const view& dx = l.out[0];
    const std::int64_t C = dx.dims.cols(), rows = dx.dims.rows();
    if (C == 0) return;
    const row_chunks chunks(rows);
    auto* partial = static_cast<float*>(l.scratch);  // (chunks, Sums, C)
    norm_grad_rows<T> all{};
    all.x = l.in[0].as<const T>();
    all.dy = l.in[dy].as<const T>();
    if (has_addend(l)) all.addend = l.in[dy + 1].as<const T>();
    all.dx = dx.as<T>();
    if (Sums == 2) all.mean = l.in[dy - 2].as<const float>();
    all.rstd = l.in[dy - 1].as<const float>();
    all.weight = portable::read_row(l.in[1], 0, C, partial + Sums * C * row_chunks::limit(rows));
    all.C = C;
    for_tasks(l, chunks.count, double(rows) * Own::nsec(C), [&](std::int64_t t, int) {
      float* sums = partial + Sums * t * C;
      std::memset(sums, 0, std::size_t(Sums * C) * 4);
      for_groups(chunks.begin(t), chunks.end(t), [&](std::int64_t r, auto n) { Own::template group<n()>(all.at(r), sums); });
    });
    for (int k = 0; k < Sums; ++k)
      portable::sum_partials(partial + k * C, chunks.count, Sums * C, l.out[std::size_t(1 + k)].template as<float>(), C);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
