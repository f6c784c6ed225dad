#pragma once
/// Bound by bytes: the sines and cosines of a position are computed once in f64 and serve every batch and head.
#include <cmath>
#include <cstring>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/rope_frequency.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct rope {
  static constexpr std::uint32_t inplace = 1;

  static constexpr std::int64_t scratch(const step_shapes& s) {
    return 4 * s.in[0][3] + 4 * 3 * s.in[0][3] * smaller(max_workers, s.in[0][1]);
  }
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t B = x.dims[0], S = x.dims[1], H = x.dims[2], D = x.dims[3], half = D / 2;
    const auto c = l.constants<op::rope>();
    const std::int64_t rotated = c.rotated(H);
    const auto* positions = l.in.size() > 1 ? l.in[1].as<const std::int32_t>() : nullptr;
    auto* frequency = static_cast<double*>(l.scratch);  // (D / 2)
    auto* buffers =
        reinterpret_cast<float*>(frequency + half);  // of each worker: cosines (D / 2), sines (D / 2), a head (D), its result (D)
    const double sign = c.direction < 0 ? -1.0 : 1.0;
    for (std::int64_t d = 0; d < half; ++d) frequency[d] = op::rope_frequency(c, d, D);
    for_tasks(l, S, double(S * half) * 40 + double(B * S * H * D) * 0.4, [&](std::int64_t s, int slice) {
      float *cosine = buffers + 3 * D * slice, *sine = cosine + half, *own = cosine + D, *to = own + D;
      const double position = positions != nullptr ? double(positions[s]) : double(c.first + s);
      for (std::int64_t d = 0; d < half; ++d) {
        const double angle = position * frequency[d];
        cosine[d] = float(std::cos(angle));
        sine[d] = float(sign * std::sin(angle));
      }
      for (std::int64_t b = 0; b < B; ++b) {
        const std::int64_t row = (b * S + s) * H;
        for (std::int64_t r = row; r < row + rotated; ++r) {
          widen_run(x.data, x.type, r * D, 1, own, D);
          for (std::int64_t d = 0; d < half; ++d) {
            to[d] = own[d] * cosine[d] - own[d + half] * sine[d];
            to[d + half] = own[d + half] * cosine[d] + own[d] * sine[d];
          }
          narrow_run(to, y.data, y.type, r * D, D);
        }
        if (rotated == H || x.data == y.data) continue;
        const std::int64_t bytes = D * size_of(x.type);  // x and y have one format
        std::memcpy(y.as<std::byte>() + (row + rotated) * bytes, x.as<const std::byte>() + (row + rotated) * bytes,
                    std::size_t((H - rotated) * bytes));
      }
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::rope, P, kernels::portable> : portable::rope {};
}  // namespace isotope::cpu
