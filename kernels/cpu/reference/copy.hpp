#pragma once
/// Moves bytes unchanged: copy, and what concat and pad share.
#include <cstring>

#include <isotope/op/copy.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {
/// y[to + i] = x[i] for every index i of x, in any format; `to` counts elements of y.
inline void move(const view& x, const view& y, std::int64_t to) {
  const auto bytes = size_of(x.type);
  for (index i(x.dims); i.valid(); i.next())
    std::memcpy(y.as<std::byte>() + bytes * (to + i.in(y.strides)), x.as<const std::byte>() + bytes * i.in(x.strides), std::size_t(bytes));
}
}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::copy, P, kernels::reference> {
  static void run(const launch& l) { reference::move(l.in[0], l.out[0], 0); }
};

}  // namespace isotope::cpu
