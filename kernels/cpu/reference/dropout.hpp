#pragma once
/// Counter-based dropout: the mask depends on seed, step, stream and element alone.
#include <isotope/core/philox.hpp>
#include <isotope/op/dropout.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::dropout, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const double p = l.constants<op::dropout>().p;
    std::uint64_t element = 0;
    for (reference::index i(y.dims); i.valid(); i.next(), ++element) {
      const auto words = philox(l.scalars->seed, element / 4, std::uint32_t(l.scalars->counter), l.ordinal);
      const bool kept = double(words[std::size_t(element % 4)]) * 0x1p-32 >= p;
      reference::store(y, i.in(y.strides), kept ? reference::load(x, i.in(x.strides)) / (1 - p) : 0.0);
    }
  }
};

}  // namespace isotope::cpu
