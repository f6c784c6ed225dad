#pragma once
/// Rotary position embedding, pair by pair; angles in f64.
#include <isotope/op/rope_frequency.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::rope, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;  // both elements of a pair are read before either is written
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::rope>();
    const std::int64_t D = x.dims[3], rotated = c.rotated(x.dims[2]);
    shape pairs = x.dims;
    pairs.set(3, D / 2);
    for (reference::index i(pairs); i.valid(); i.next()) {
      const double a = reference::load(x, i.in(x.strides)), b = reference::load(x, i.in(x.strides) + D / 2 * x.strides[3]);
      if (i[2] >= rotated) {
        reference::store(y, i.in(y.strides), a);
        reference::store(y, i.in(y.strides) + D / 2 * y.strides[3], b);
        continue;
      }
      const std::int64_t position = l.in.size() > 1 ? l.in[1].as<const std::int32_t>()[i[1] * l.in[1].strides[0]] : c.first + i[1];
      const double t = double(position) * op::rope_frequency(c, i[3], D);
      const double cosine = std::cos(t), sine = double(c.direction) * std::sin(t);
      reference::store(y, i.in(y.strides), a * cosine - b * sine);
      reference::store(y, i.in(y.strides) + D / 2 * y.strides[3], b * cosine + a * sine);
    }
  }
};

}  // namespace isotope::cpu
