#pragma once
/// Rotary position embedding, pair by pair; angles in f64.
#include <isotope/op/rope.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::rope, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;  // both elements of a pair are read before either is written
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::rope>();
    const std::int64_t D = x.dims[3];
    shape pairs = x.dims;
    pairs.set(3, D / 2);
    for (reference::index i(pairs); i.valid(); i.next()) {
      const double t = double(c.first + i[1]) * std::pow(c.base, -2.0 * double(i[3]) / double(D));
      const double cosine = std::cos(t), sine = double(c.direction) * std::sin(t);
      const double a = reference::load(x, i.in(x.strides)), b = reference::load(x, i.in(x.strides) + D / 2 * x.strides[3]);
      reference::store(y, i.in(y.strides), a * cosine - b * sine);
      reference::store(y, i.in(y.strides) + D / 2 * y.strides[3], b * cosine + a * sine);
    }
  }
};

}  // namespace isotope::cpu
