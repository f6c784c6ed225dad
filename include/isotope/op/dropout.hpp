#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
/// The node's ordinal is the random stream.
struct dropout {
  struct constants {
    double p = 0;  // the probability of zero, in [0, 1)
    static constexpr constants of(const attributes& a) { return {.p = a.f[0]}; }
    constexpr operator attributes() const { return {.f = {p}}; }
  };
  static constexpr std::string_view name = "dropout";
  static constexpr bool random(const attributes&) { return true; }
  static constexpr void infer(shape_rule& r) {
    const auto [p] = constants::of(r.attr);
    if (r.require(p >= 0 && p < 1, "the probability must be in [0,1)") &&
        r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first"))
      r.yield(r.dims(0), r.type(0));
  }
  /// Applies the same mask to dy.
  static constexpr void gradient(pullback& g) {
    const std::int32_t dy = g.dy().id;
    g.give(0, {&g.machine(), g.machine().record(info<dropout>, {&dy, 1}, g.attr, place::current(), g.ordinal).out[0]});
  }
};
}  // namespace op

/// y[i] = x[i] / (1 - p) with probability 1 - p, else 0; the identity in evaluation programs and for p = 0.
/// Element i is kept if u >= p, u = word i % 4 of Philox 4x32-10(key = seed, counter = (i / 4, step, stream)) as u32 / 2^32;
/// the mask is the same on every backend and if it is recomputed.
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
