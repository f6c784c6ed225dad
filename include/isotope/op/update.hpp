#pragma once
/// What the planner and the optimisers emit beside the model's own ops.
#include "../core/tape.hpp"

namespace isotope::op {

/// A step made of a fused body alone: every element-wise op runs through it.
struct elementwise {
  static constexpr std::string_view name = "elementwise";
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.type(0)); }
};

/// Operands into, x: into[i] += x[i] in place; in the first phase of an accumulated step, into[i] = x[i].
struct accumulate {
  static constexpr std::string_view name = "accumulate";
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr bool accumulates = true;
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) {
    if (r.require(r.dims(0) == r.dims(1), "shapes differ")) r.yield(r.dims(0), r.type(0));
  }
};

/// Operand g (N) in accumulation format; output norm (): sqrt(sum_i (k g[i])^2), k = step_scalars::gradient_scale, summed in f64 in fixed blocks.
struct global_norm {
  static constexpr std::string_view name = "global_norm";
  static constexpr void infer(shape_rule& r) { r.yield({}, r.accum()); }
};

/// Operand g, in place: g[i] = min(max(g[i], -c), c), c = step_scalars::clip_value / gradient_scale; c <= 0: unchanged. NaN stays.
struct clip_value {
  static constexpr std::string_view name = "clip_value";
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.type(0)); }
};

/// Operand g, in place: g[i] = g[i] min(1, c / (n + 1e-6)), n = sqrt(sum (k g[i])^2), k = gradient_scale, c = step_scalars::clip_norm;
/// c <= 0: unchanged.
struct clip_norm {
  static constexpr std::string_view name = "clip_norm";
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.type(0)); }
};

/// Whether an update has its operands: `tensors` of N elements, [shadow (N)], [packed], g (N), norm, loss; attributes as adamw.
constexpr bool equal_counts(shape_rule& r, int tensors) {
  const bool shadow = r.attr.i[1] != 0, packed = r.attr.i[3] != 0;
  const int g = tensors + int(shadow) + int(packed);
  if (!r.require(r.inputs() == g + 3,
                 "an update takes its tensors, a shadow and a packed copy where its attributes say so, the gradient, norm and loss"))
    return false;
  const auto N = r.dims(0).count();
  for (int k = 1; k < tensors + int(shadow); ++k)
    if (!r.require(r.dims(k).count() == N, "tensors of an update differ in size")) return false;
  return r.require(r.dims(g).count() == N, "the gradient has another size than the weights") &&
         r.require(r.attr.i[0] >= 0 && r.attr.i[0] <= N, "more elements decay than there are");
}
constexpr void update_in_place(shape_rule& r) {
  for (int k = 0; k < r.inputs() - 3; ++k) r.yield(r.dims(k), r.type(k));
}

/// Operands w (N), m (N), v (N) [, shadow (N) [, packed]], g (N), norm (), loss (), all in place but the last three. attributes: i[0] elements
/// that decay (they come first), i[1] 1 with a shadow, i[2] 1 to clip by the global norm, i[3] columns of the weight w that the product's kernel
/// has a packed copy of (0: none), i[4] elements that all updates of the step write (0: N), f[0] factor on the learning rate lr.
/// Skipped whole where norm or loss is not finite. With the scalars of the step,
/// t = optimizer_step and c = gradient_scale min(1, clip_norm / (norm + 1e-6)) (clip_norm <= 0 or i[2] = 0: gradient_scale):
///   m = beta1 m + (1 - beta1) c g,   v = beta2 v + (1 - beta2) (c g)^2
///   w = w - lr decay w (first i[0] elements) - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon),   shadow = w rounded
/// Source: Loshchilov & Hutter 2017, arXiv:1711.05101, algorithm 2; clipping: Pascanu et al. 2012, arXiv:1211.5063.
struct adamw {
  static constexpr std::string_view name = "adamw";
  static constexpr std::uint8_t inout = 0b11111;
  static constexpr void infer(shape_rule& r) {
    if (equal_counts(r, 3)) update_in_place(r);
  }
};

/// Operands w (N), m (N) [, shadow (N)], g (N), norm (), loss (); attributes and skipping as adamw. With c as there:
///   m = momentum m + c g + decay w (decay on the first i[0] elements),   w = w - lr m,   shadow = w rounded
/// Source: Sutskever et al. 2013; the form of PyTorch's SGD.
struct sgd {
  static constexpr std::string_view name = "sgd";
  static constexpr std::uint8_t inout = 0b111;
  static constexpr void infer(shape_rule& r) {
    if (equal_counts(r, 2)) update_in_place(r);
  }
};

}  // namespace isotope::op
