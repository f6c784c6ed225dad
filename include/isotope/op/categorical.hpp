#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
/// The node's ordinal is the random stream.
struct categorical {
  struct constants {
    double temperature = 1;  // what logits are divided by, > 0
    static constexpr constants of(const attributes& a) { return {.temperature = a.f[0]}; }
    constexpr operator attributes() const { return {.f = {temperature}}; }
  };
  static constexpr std::string_view name = "categorical";
  static constexpr bool random(const attributes&) { return true; }
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    if (!r.require(x.rank >= 1 && x[-1] > 0, "needs at least one class") ||
        !r.require(!x.late(-1), "the number of classes is a late size: give a constant one") ||
        !r.require(constants::of(r.attr).temperature > 0, "the temperature must be positive"))
      return;
    shape y;
    for (int i = 0; i + 1 < x.rank; ++i) y.push(x.axis(i));
    r.yield(y, dtype::i32);
  }
};
}  // namespace op

/// y[row] ~ softmax(logits[row] / temperature): the first class at which the running sum of probabilities exceeds u times their total,
/// u = (word row % 4 of Philox 4x32-10(key = seed, counter = (row / 4, step, stream)) + 0.5) / 2^32; sums in class order.
///
/// @param logits       (..., V)
/// @param temperature  > 0
/// @return             (...)  i32, not differentiable
/// @error              no classes, temperature <= 0
template <Machine M> constexpr tensor<M> categorical(tensor<M> logits, double temperature = 1, place at = place::current()) {
  return apply<op::categorical>(at, op::categorical::constants{.temperature = temperature}, logits);
}
}  // namespace isotope
