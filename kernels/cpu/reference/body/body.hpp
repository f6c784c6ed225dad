#pragma once
/// The interpreter of fused element-wise bodies: each instruction's result is rounded to its format before the next one reads it.
#include <isotope/core/trace.hpp>

#include "access.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace reference {

/// Elements per call: instructions are looked up once per chunk.
inline constexpr std::int64_t body_chunk = 64;

/// Runs the body on the n <= body_chunk elements from `at` on. Operands before `skip` belong to the host of the body and are not loaded; `hosted`
/// holds the host's results. All operands are loaded before the first result is stored, so outputs may overwrite operands.
template <class P> void run_body(const launch& l, const index& at, std::int64_t n, std::size_t skip, const typename P::accum* hosted) {
  using A = typename P::accum;
  A operands[max_inputs][body_chunk], results[max_micro_ops][body_chunk];
  const int rank = l.out[0].dims.rank;
  for (std::size_t k = skip; k < l.in.size(); ++k) {
    const extents strides = repeated(l.in[k], rank);
    index i = at;
    for (std::int64_t e = 0; e < n; ++e, i.next()) operands[k][e] = A(load(l.in[k], i.in(strides)));
  }
  for (std::size_t j = 0; j < l.body.size(); ++j) {
    const instruction& m = l.body[j];
    const void* in[3]{};
    for (int k = 0; k < m.args; ++k) {
      const auto a = m.arg[k];
      in[k] = a == gemm_result ? hosted : a < max_inputs ? operands[a] : results[a - max_inputs];
    }
    m.run(in, results[j], n, m.scalar);
    for (std::int64_t e = 0; e < n; ++e) results[j][e] = A(rounded(m.type, double(results[j][e])));
    if (m.store < 0) continue;
    const view& y = l.out[std::size_t(m.store)];
    const bool add = ((l.accumulate >> m.store) & 1) != 0;
    index i = at;
    for (std::int64_t e = 0; e < n; ++e, i.next()) {
      const auto to = i.in(y.strides);
      store(y, to, add ? load(y, to) + double(results[j][e]) : double(results[j][e]));  // keeps -0
    }
  }
}

}  // namespace reference
}  // namespace arch
}  // namespace isotope::cpu
