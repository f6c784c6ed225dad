#pragma once
/// The norm of all gradients together, for clipping and reports.
#include <cstdint>
#include <string_view>

#include "../core/tape.hpp"

namespace isotope::op {

/// Operand g (N) in accumulation format; output norm (): sqrt(sum_i (k g[i])^2), k = step_scalars::gradient_scale, summed in f64 in fixed blocks.
struct global_norm {
  static constexpr std::string_view name = "global_norm";
  static constexpr void infer(shape_rule& r) { r.yield({}, r.accum()); }
};

}  // namespace isotope::op
