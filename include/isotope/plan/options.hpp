#pragma once
/// The options of a training program.
#include <cstdint>
#include <string_view>

#include "../core/shape.hpp"
#include "differentiate.hpp"
#include "head_policy.hpp"

namespace isotope {

/// muon: op::muon updates matrices of hidden layers (param_options::muon says which), op::adamw everything else, in one step with one learning rate
/// and decay. It takes step_scalars::momentum for the matrices, usually 0.95, and AdamW's betas and epsilon for the rest. A matrix has no second
/// moment: it saves 4 bytes per element compared with AdamW.
enum class optimizer_kind : std::uint8_t { none, adamw, sgd, muon };

/// How gradients are clipped before the update: all together (step_scalars::clip_norm on the global norm), each tensor's norm to clip_norm, or each
/// number to [-clip_value, clip_value]. The last two run before the norm is taken, which then scales nothing, as with `none`.
enum class clipping : std::uint8_t { global_norm, tensor_norm, value, none };

/// When parameters are updated.
///
/// after_backward: all together, when all gradients are known. Gradients have their own region, 4 bytes per parameter.
/// within_backward: each parameter separately, as soon as its gradient g is final and no later step reads the old weight:
///   n = |g|,   w, m, v [, shadow] = adamw or sgd (w, m, v, g, n, loss),   g's bytes are free
/// Weights and moments get the same bits by either policy. within_backward has no gradient region: planned memory falls by 4 bytes per parameter,
/// less what gradients take where most temporaries are alive, and a gradient is read while it is in cache. In return
/// - the optimizer is adamw or sgd;
/// - the global norm is not known in time: `clip` is none, value or tensor_norm;
/// - gradients of micro-batches are not accumulated: `accumulate` is false; no gradient can be read after the step (tensor_kind::gradient);
/// - a loss that is not finite skips every update, but a gradient that is not finite skips only its own tensor's update. The report says `skipped`
///   in both cases; where it gives a finite loss, other tensors were updated;
/// - the output grad_norm holds n of each trained tensor, in the order of the slots; step_report::grad_norm is the root of their sum of squares;
/// - each tensor has two launches, or three with tensor_norm or value, where all tensors together had two or three.
/// Source: Lv et al. 2023, arXiv:2306.09782 (LOMO, which fuses gradient and update in this way).
enum class update_policy : std::uint8_t { after_backward, within_backward };

/// Which weights have a packed copy, 2 bytes per element, where the matmuls of a target can read one (kernel_info::packed). AdamW or Muon maintains
/// the copy, so that matmuls that read the weight column-wise, as dy W does, need not transpose it. `amortized`: every such weight if a step has
/// several micro-batches (training_options::accumulate), because AdamW loses what matmuls gain from a single use. Bits do not depend on it.
enum class packing : std::uint8_t { amortized, always, never };

/// The format in which ranks of a tensor group exchange activations whose sums are pending; gradients of weights are always in accumulation format.
/// program: that of the program. In bf16, each rank rounds its part before the sum and all round the sum, which is taken in f32; half the bytes.
/// accumulation: f32 in bf16 programs; the sum alone is rounded.
enum class reduced_format : std::uint8_t { program, accumulation };
constexpr std::string_view name_of(reduced_format f) { return f == reduced_format::program ? "program" : "accumulation"; }

/// What the optimiser does with one parameter.
struct param_group {
  bool decay = true, trainable = true;
  double rate_scale = 1;
  int muon = -1;  // as param_options::muon
};
/// Chooses a group by path and shape; `given` is the model's choice.
using grouping = param_group (*)(std::string_view path, const shape& dims, param_group given);

/// The options of a training program. Hyperparameters are step scalars, not part of the plan.
struct training_options {
  optimizer_kind optimizer = optimizer_kind::adamw;
  clipping clip = clipping::global_norm;
  update_policy update = update_policy::after_backward;
  grouping group = nullptr;  // null: as the model says
  bool accumulate = false;   // several micro-batches per step
  recompute_policy recompute{};
  head_policy head{};
  bool fuse = true;  // changes no bit of a result, but where join_sums does
  bool join_sums =
      true;  // if steps are fused, kernels that can add up the rows they write do so, in their own order (plan/column_sums.hpp)
  packing pack = packing::amortized;
  bool decompose_all = false;  // decomposes every op that can be decomposed
  /// The devices that train together: one plan is that of each of them. The batch of the model is that of one data index; the gradient is the mean over all.
  device_mesh mesh{};
  int zero = 0;  // 1: each data index keeps and updates a part of the weights' masters and moments (ZeRO-1); the same bits as 0
  reduced_format reduced = reduced_format::program;
  /// With a tensor group: work that does not need a sum of activations is put behind the begin of the sum, so that devices which can run both at the same time do
  /// (plan/overlap.hpp). It changes no bit.
  bool overlap = true;
  std::int64_t bucket_bytes =
      std::int64_t(25)
      << 20;  // of gradients that one collective of the data group takes, at least; a bucket is sent when its last is known
};

}  // namespace isotope
