#pragma once
/// The constants and the shape rule that the updates of optimisers share.
#include "../core/tape.hpp"

namespace isotope::op {

struct update_rule {
  struct constants {
    std::int64_t decaying = 0;   // elements of the weight w that decay: they come first
    bool shadow = false;         // an operand holds w rounded to the program's format
    bool clips = false;          // by the global norm
    std::int64_t columns = 0;    // of w, where the gemm's kernel has a packed copy of it; 0: it has none
    std::int64_t written = 0;    // elements that all updates of the step write; 0: those of w
    double rate_scale = 1;       // factor on the learning rate
    double direction_scale = 0;  // of muon: factor on the direction
    static constexpr constants of(const attributes& a) { return {a.i[0], a.i[1] != 0, a.i[2] != 0, a.i[3], a.i[4], a.f[0], a.f[1]}; }
    constexpr operator attributes() const { return {.i = {decaying, shadow, clips, columns, written}, .f = {rate_scale, direction_scale}}; }
  };

  /// Whether an update has its operands: `tensors` of N elements, [shadow (N)], [packed], g (N), norm, loss.
  static constexpr bool equal_counts(shape_rule& r, int tensors) {
    const auto c = constants::of(r.attr);
    const bool shadow = c.shadow, packed = c.columns != 0;
    const int g = tensors + int(shadow) + int(packed);
    if (!r.require(r.inputs() == g + 3,
                   "an update takes its tensors, a shadow and a packed copy where its attributes say so, the gradient, norm and loss"))
      return false;
    const auto N = r.dims(0).count();
    for (int k = 1; k < tensors + int(shadow); ++k)
      if (!r.require(r.dims(k).count() == N, "tensors of an update differ in size")) return false;
    return r.require(r.dims(g).count() == N, "the gradient has another size than the weights") &&
           r.require(c.decaying >= 0 && c.decaying <= N, "more elements decay than there are");
  }
  static constexpr void update_in_place(shape_rule& r) {
    for (int k = 0; k < r.inputs() - 3; ++k) r.yield(r.dims(k), r.type(k));
  }
};

}  // namespace isotope::op
