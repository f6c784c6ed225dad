#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
/// The node's ordinal is the random stream.
struct dropout {
  struct constants {
    double p = 0;             // the probability of zero, in [0, 1)
    std::int64_t first = 0;   // the number of the first element here among those of all devices
    std::int64_t run = 0;     // so many elements here have numbers that follow one another; 0: all
    std::int64_t stride = 0;  // from the number of the first element of a run to that of the next run's
    std::int64_t step = 0;    // before `localise`: what `first` grows by with each tensor index
    static constexpr constants of(const attributes& a) {
      return {.p = a.f[0], .first = a.i[0], .run = a.i[1], .stride = a.i[2], .step = a.i[3]};
    }
    constexpr operator attributes() const { return {.i = {first, run, stride, step}, .f = {p}}; }
    /// The number of element i.
    constexpr std::int64_t number(std::int64_t i) const { return first + (run == 0 ? i : i / run * stride + i % run); }
  };
  static constexpr std::string_view name = "dropout";
  static constexpr bool random(const attributes&) { return true; }
  static constexpr void infer(shape_rule& r) {
    const double p = constants::of(r.attr).p;
    if (r.require(p >= 0 && p < 1, "the probability must be in [0,1)") &&
        r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first"))
      r.yield(r.dims(0), r.type(0));
  }
  /// Elements have their numbers among those of all devices. In a plan, `first` is the number of elements of a replica.
  static constexpr void shard(sharding& s) {
    auto c = constants::of(s.attr);
    if (s.replicas() > 1) c.first = s.dims(0).count();
    if (s.divided(0)) {
      const axis_split& along = s.along(0);
      if (!s.require(along.groups == 1 && !along.padded, "the elements of a device are not one run of each row")) return;
      std::int64_t inner = 1;
      for (int i = along.axis + 1; i < s.dims(0).rank; ++i) inner *= s.dims(0)[i];
      c.step = c.run = along.local(s.parts()) * inner;
      c.stride = along.size() * inner;
      s.yield(0, s.at(0));
    }
    s.attr = c;
  }
  static constexpr void localise(attributes& a, const mesh_position& at) {
    auto c = constants::of(a);
    c.first = at.data * c.first + at.tensor * c.step;
    c.step = 0;
    a = c;
  }
  /// Applies the same mask to dy.
  static constexpr void gradient(pullback& g) {
    const std::int32_t dy = g.dy().id;
    g.give(0, {&g.machine(), g.machine().record(rules<dropout>, {&dy, 1}, g.attr, place::current(), g.ordinal).out[0]});
  }
};
}  // namespace op

/// y[i] = x[i] / (1 - p) with probability 1 - p, else 0; the identity in evaluation programs and for p = 0.
/// Element i is kept if u >= p, u = word i % 4 of Philox 4x32-10(key = seed, counter = (i / 4, step, stream)) as u32 / 2^32;
/// the mask is the same on every backend, if it is recomputed, and on any mesh of devices, since i counts the elements of all of them.
///
/// @param x  (...)  any shape
/// @param p  probability of zero, in [0, 1)
/// @error    p outside [0, 1)
/// Source: Srivastava et al. 2014; Salmon et al. 2011 (Philox).
template <Machine M> constexpr tensor<M> dropout(tensor<M> x, double p, place at = place::current()) {
  if (p == 0 || (x.machine != nullptr && !x.machine->training)) return x;
  return apply<op::dropout>(at, op::dropout::constants{.p = p}, x);
}
}  // namespace isotope
