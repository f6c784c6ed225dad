#pragma once
/// Counter-based dropout: the mask depends on seed, step, stream and element alone.
#include <isotope/core/philox.hpp>
#include <isotope/op/dropout.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::dropout, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr bool counts_all_elements = true;
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::dropout>();
    const double p = c.p;
    std::int64_t here = 0;
    for (reference::index i(y.dims); i.valid(); i.next(), ++here) {
      const auto element = std::uint64_t(c.number(here));
      const auto words = philox(l.scalars->seed, element / 4, std::uint32_t(l.scalars->counter), l.ordinal);
      const bool kept = double(words[std::size_t(element % 4)]) * 0x1p-32 >= p;
      reference::store(y, i.in(y.strides), kept ? reference::load(x, i.in(x.strides)) / (1 - p) : 0.0);
    }
  }
};

}  // namespace isotope::cpu
