#pragma once
/// Bound by bytes: the sines and cosines of a chunk of positions are computed once in f64 and serve every batch and head.
#include <cmath>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/rope.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct rope {
  static constexpr std::uint32_t inplace = 1;

  static constexpr std::int64_t scratch(const step_shapes& s) {
    return 4 * (s.in[0][1] * s.in[0][3] + 2 * s.in[0][3] * smaller(max_workers, s.in[0][1]));
  }
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t B = x.dims[0], S = x.dims[1], H = x.dims[2], D = x.dims[3], half = D / 2;
    auto* table = static_cast<float*>(l.scratch);  // (S, 2, D / 2): cosines, sines
    float* buffers = table + S * D;
    const auto c = l.constants<op::rope>();
    const double sign = c.direction < 0 ? -1.0 : 1.0;
    for_tasks(l, S, double(S * half) * 40, [&](std::int64_t s, int) {
      for (std::int64_t d = 0; d < half; ++d) {
        const double angle = double(c.first + s) * std::pow(c.base, -2.0 * double(d) / double(D));
        table[s * D + d] = float(std::cos(angle));
        table[s * D + half + d] = float(sign * std::sin(angle));
      }
    });
    for_tasks(l, S, double(B * S * H * D) * 0.4, [&](std::int64_t s, int slice) {
      const float *cosine = table + s * D, *sine = cosine + half;
      float* own = buffers + 2 * D * slice;
      for (std::int64_t b = 0; b < B; ++b)
        for (std::int64_t h = 0; h < H; ++h) {
          const std::int64_t r = (b * S + s) * H + h;
          widen_run(x.data, x.type, r * D, 1, own, D);
          float* to = own + D;
          for (std::int64_t d = 0; d < half; ++d) {
            to[d] = own[d] * cosine[d] - own[d + half] * sine[d];
            to[d + half] = own[d + half] * cosine[d] + own[d] * sine[d];
          }
          narrow_run(to, y.data, y.type, r * D, D);
        }
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::rope, P, kernels::portable> : portable::rope {};
}  // namespace isotope::cpu
