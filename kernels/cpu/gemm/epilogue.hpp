#pragma once
/// The epilogue of a gemm: applies alpha and beta c, rounds, and stores the result or runs the fused body on it. Bound by bytes: it works on cells of
/// C while they are in L2.
#include <isotope/kernels/cpu/body/fused_body.hpp>
#include <isotope/kernels/cpu/gemm/shape.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// Calls f with the typed data of x.
template <class F> void with_type(const view& x, const F& f) {
  switch (x.type) {
    case dtype::bf16: f(x.as<const bfloat16>()); break;
    case dtype::f16: f(x.as<const float16>()); break;
    default: f(x.as<const float>()); break;
  }
}

class gemm_epilogue {
 public:
  gemm_epilogue(const launch& l, const matmul_shape& s)
      : l_(l),
        s_(s),
        own_(l.constants<op::matmul>().operands == 3 ? 3u : 2u),
        alpha_(float(l.constants<op::matmul>().alpha)),
        beta_(own_ == 3 ? float(l.constants<op::matmul>().beta) : 0.0f),
        type_(l.constants<op::matmul>().format.type()),
        add_((l.accumulate & 1u) != 0),
        body_(l, l.body.empty() ? l.in.size() : own_) {
    const bool plain = l.body.empty() && type_ == l.out[0].type && alpha_ == 1.0f && beta_ == 0.0f;
    direct_ = plain && type_ == dtype::f32;
    rounded_ = plain && type_ == dtype::bf16 && !add_;
    finishes_rounded_ = !l.body.empty() && type_ == dtype::bf16 && alpha_ == 1.0f && beta_ == 0.0f && body_.takes_bf16_product();
  }
  /// Whether the output takes the sums unchanged or adds them: such sums need no `finish`.
  bool direct() const { return direct_; }
  bool adds() const { return add_; }
  /// Whether the output is the sums rounded to bf16: a caller that rounds them itself needs no `finish` either.
  bool rounded() const { return rounded_; }
  /// Whether the body accepts sums rounded to bf16, which `finish_rounded` takes.
  bool finishes_rounded() const { return finishes_rounded_; }

  /// Makes C[m0:m1, n0:n1] of one batch from its sums. `tile` holds them in rows of `ld` and is overwritten.
  void finish(std::int64_t batch, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1, float* tile, std::int64_t ld) const {
    const std::int64_t n = n1 - n0, first = (batch * s_.M + m0) * s_.N + n0;
    if (alpha_ != 1.0f || beta_ != 0.0f || (type_ == dtype::bf16 && !l_.body.empty())) {
      for (std::int64_t m = m0; m < m1; ++m) {
        float* row = tile + (m - m0) * ld;
        if (alpha_ != 1.0f)
          for (std::int64_t j = 0; j < n; ++j) row[j] *= alpha_;
        if (beta_ != 0.0f) {
          with_type(l_.in[2], [&](const auto* c) {
            c += s_.offset_c(batch) + m * s_.c_row + n0 * s_.c_col;
            for (std::int64_t j = 0; j < n; ++j) row[j] += beta_ * float(c[j * s_.c_col]);
          });
        }
        if (type_ == dtype::bf16) math::round_to_bf16(row, n);
      }
    }
    // Rows that are contiguous in both tile and output are handled as one run, unless they are long.
    const bool joined = n == s_.N && ld == n && (l_.body.empty() || !fused_body::long_enough(n));
    const std::int64_t runs = joined ? 1 : m1 - m0, length = joined ? (m1 - m0) * n : n;
    if (!l_.body.empty()) return body_.run(first, runs, length, s_.N, {tile, ld});
    for (std::int64_t r = 0; r < runs; ++r) store(tile + r * ld, first + r * s_.N, length);
  }

  /// As `finish`, from sums that are already rounded; needs finishes_rounded().
  void finish_rounded(std::int64_t batch, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1, const bfloat16* tile,
                      std::int64_t ld) const {
    body_.run((batch * s_.M + m0) * s_.N + n0, m1 - m0, n1 - n0, s_.N, {tile, ld, dtype::bf16});
  }

 private:
  void store(float* from, std::int64_t at, std::int64_t n) const {
    const view& y = l_.out[0];
    if (add_) {
      with_type(y, [&](const auto* old) {
        for (std::int64_t i = 0; i < n; ++i) from[i] = float(old[at + i]) + from[i];
      });
    }
    narrow_run(from, y.data, y.type, at, n);
  }

  const launch& l_;
  const matmul_shape& s_;
  std::size_t own_;
  float alpha_, beta_;
  dtype type_;
  bool add_, direct_ = false, rounded_ = false, finishes_rounded_ = false;
  fused_body body_;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
