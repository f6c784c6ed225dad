#pragma once
/// Counts the floating-point operations of a step and of a plan from shapes: what the formulas take, however a kernel tiles them.
#include <algorithm>
#include <array>
#include <cstdint>

#include "../core/target.hpp"
#include "plan.hpp"

namespace isotope {

/// Returns the operations of one run of step s; a scalar dimension counts with its maximum:
///
/// - matmul: 2 M N K for each matrix of a batch, and one for each instruction of its epilogue and element of the result;
/// - attention: 4 D for each head and each pair of a query and a key that it sees, without those that a causal rule or a window hides (q k^T and p
/// v);
///   its gradient: 10 D (the scores again, dy v^T, dv, dq, dk). Softmax, an additive mask and dropout count nothing;
/// - element-wise: one for each instruction and element of the result, whatever the instruction is;
/// - fft, rfft, irfft: 5 N log2 N for each transform of N complex points and half of it for N real ones, with log2 N rounded up;
/// - copy, concat, split, embedding, fill and other ops that only move numbers or make them from none: 0;
/// - every other op (norms, softmax, cross-entropy, sums, updates): one for each element of its largest operand or result.
constexpr std::int64_t flops_of(const plan_view& p, const step& s) {
  std::array<shape, max_inputs + max_outputs> dims{};
  const auto operands = std::size_t(s.inputs + s.outputs);
  std::int64_t largest = 0;
  for (std::size_t k = 0; k < operands; ++k) {
    dims[k] = p.operands[std::size_t(s.operands) + k].dims;
    largest = std::max(largest, dims[k].count());
  }
  const std::int64_t elements = dims[s.inputs].count(), body = s.body_size * elements;
  if (s.op->kind == op_kind::elementwise || s.op->body == body_role::alone) return std::max(body, elements);
  if (s.op->flops == nullptr) return largest;
  return s.op->flops({{dims.data(), s.inputs}, {dims.data() + s.inputs, s.outputs}, &s.attr, s.summed}) + body;
}

/// Returns the operations of a step of training or of a run, with so many micro-batches each.
constexpr std::int64_t flops_of(const plan_view& p, std::int64_t micro_batches = 1) {
  std::int64_t sum = 0;
  for (const step& s : p.steps) {
    const auto runs = [&](std::uint8_t active) { return (s.phases & active) != 0 ? 1 : 0; };
    const std::int64_t last = runs(std::uint8_t((micro_batches == 1 ? phase_first : phase_later) | phase_last));
    const std::int64_t before = micro_batches == 1 ? 0 : runs(phase_first) + (micro_batches - 2) * runs(phase_later);
    sum += (before + last) * flops_of(p, s);
  }
  return sum;
}

}  // namespace isotope
