#pragma once
/// The only kernel that views need: the gradient of narrow.
#include <isotope/op/view.hpp>

#include "copy.hpp"

namespace isotope::cpu {

template <class P> struct kernel<op::pad, P, kernels::reference> {
  static void run(const launch& l) {
    const view& y = l.out[0];
    const auto bytes = size_of(y.type);
    for (reference::index i(y.dims); i.valid(); i.next())  // zero is all bits zero in every format
      std::memset(y.as<std::byte>() + bytes * i.in(y.strides), 0, std::size_t(bytes));
    reference::move(l.in[0], y, l.constants<op::pad>().first * y.strides[std::size_t(l.constants<op::pad>().axis)]);
  }
};

}  // namespace isotope::cpu
