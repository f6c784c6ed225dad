#pragma once
/// The Machine concept: what model code is evaluated on.
#include <array>
#include <concepts>
#include <cstdint>
#include <span>

#include "trace.hpp"

namespace isotope {

/// The result of applying an op: the ids of its outputs.
struct applied {
  std::array<std::int32_t, max_outputs> out{-1, -1, -1, -1, -1, -1};
};
struct param_options {
  initializer init = init::zeros;
  int decay = -1;         // 1, 0, or -1: matrices decay, vectors do not (the GPT-2 rule)
  bool trainable = true;  // false: no gradient, no optimiser state
  double rate_scale = 1;  // factor on the learning rate
  /// Whether the Muon optimiser updates the parameter with Muon (1, needs two axes) or with AdamW (0). -1: Muon for matrices that only matmuls read and whose
  /// result is multiplied by another weight later, so AdamW for embeddings, the output layer and vectors.
  int muon = -1;
  axis_split split{};  // how the devices of a tensor group divide it (training_options::mesh)
};

/// A Machine evaluates model code: it records (`graph`) or runs (`eager`) each op. It identifies values by ids.
template <class M>
concept HasTarget = requires { typename M::target; };
template <class M>
concept AppliesOps = requires(M& m, const op_rules& op, std::span<const std::int32_t> in, const attributes& a, place at) {
  { m.apply(op, in, a, at) } -> std::same_as<applied>;
};
template <class M>
concept DeclaresParams = requires(M& m, const name& n, const shape& s, const param_options& o, place at) {
  { m.param(n, s, o, at) } -> std::same_as<std::int32_t>;
};
template <class M>
concept DeclaresInputs = requires(M& m, const name& n, const shape& s, dtype t, place at) {
  { m.input(n, s, t, at) } -> std::same_as<std::int32_t>;
};
template <class M>
concept DescribesValues = requires(const M& m, std::int32_t id) {
  { m.describe(id) } -> std::same_as<const value&>;
  { m.program() } -> std::same_as<dtype>;
};
/// A Machine that also has states: tensors that keep their contents from run to run, and can be assigned to.
template <class M>
concept HoldsState = requires(M& m, const name& n, const shape& s, dtype t, place at, std::int32_t id, const op_info& op) {
  { m.state(n, s, t, at) } -> std::same_as<std::int32_t>;
  { m.assign(id, id, at) } -> std::same_as<std::int32_t>;
  { m.keeps(id, op, at) } -> std::same_as<bool>;
};
template <class M>
concept Machine = HasTarget<M> && AppliesOps<M> && DeclaresParams<M> && DeclaresInputs<M> && DescribesValues<M>;

}  // namespace isotope
