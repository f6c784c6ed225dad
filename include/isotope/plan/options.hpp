#pragma once
/// What a training program is put together of.
#include <cstdint>
#include <string_view>

#include "../core/shape.hpp"
#include "differentiate.hpp"

namespace isotope {

/// muon: op::muon on matrices of hidden layers (param_options::muon says which those are), op::adamw on everything else, in one step with one
/// learning rate and decay. It takes step_scalars::momentum for the matrices, 0.95 as a rule, and AdamW's betas and epsilon for the rest. A
/// matrix has no second moment: 4 bytes an element less than with AdamW.
enum class optimizer_kind : std::uint8_t { none, adamw, sgd, muon };

/// How gradients are clipped before the update: all together (step_scalars::clip_norm on the global norm), each tensor's norm to
/// clip_norm, or each number to [-clip_value, clip_value]. These two run before the norm is taken, which then scales nothing, as with `none`.
enum class clipping : std::uint8_t { global_norm, tensor_norm, value, none };

/// When parameters are updated.
///
/// after_backward: all together when all gradients are known. Gradients keep a region of their own, 4 bytes a parameter.
/// within_backward: each one by itself, as soon as its gradient g is final and no later step reads the old weight:
///   n = |g|,   w, m, v [, shadow] = adamw or sgd (w, m, v, g, n, loss),   g's bytes are free
/// Weights and moments get the same bits by either policy. Within the backward pass there is no gradient region: planned memory falls by 4 bytes a
/// parameter, less what gradients take where most temporaries are alive, and a gradient is read while it is in cache. In return
/// - the optimizer is adamw or sgd;
/// - the global norm is not known in time: `clip` is none, value or tensor_norm;
/// - gradients of micro-batches are not added up: `accumulate` is false; no gradient can be read after the step (tensor_kind::gradient);
/// - a loss that is not finite skips every update, but a gradient that is not finite skips its own tensor's alone. The report says `skipped` for
///   either; where it gives a finite loss, other tensors were updated;
/// - the output grad_norm holds n of each trained tensor, in the order of the slots; step_report::grad_norm is the root of their sum of squares;
/// - two launches a tensor, three with tensor_norm or value, stand where two or three did for all.
/// Source: Lv et al. 2023, arXiv:2306.09782 (LOMO, which fuses gradient and update so).
enum class update_policy : std::uint8_t { after_backward, within_backward };

/// Which weights have a packed copy, 2 bytes each, where the products of a target can read one (kernel_info::packed): AdamW or Muon writes it, and products
/// that read the weight across its rows, as dy W, need not turn it. `amortized`: all of them where a step has several micro-batches
/// (training_options::accumulate); what products gain from one use AdamW loses. Bits do not depend on it.
enum class packing : std::uint8_t { amortized, always, never };

/// What the optimiser does with one parameter.
struct param_group {
  bool decay = true, trainable = true;
  double rate_scale = 1;
  int muon = -1;  // as param_options::muon
};
/// Chooses a group by path and shape; `given` is what the model said.
using grouping = param_group (*)(std::string_view path, const shape& dims, param_group given);

/// How a training program is put together. Hyperparameters are step scalars, not part of the plan.
struct training_options {
  optimizer_kind optimizer = optimizer_kind::adamw;
  clipping clip = clipping::global_norm;
  update_policy update = update_policy::after_backward;
  grouping group = nullptr;  // none: as the model says
  bool accumulate = false;   // several micro-batches per step
  recompute_policy recompute{};
  bool fuse = true;
  packing pack = packing::amortized;
  bool common = false;  // decompose every op that can be
};

}  // namespace isotope
