#pragma once
/// Counts the floating-point operations of a step and of a plan from shapes: what the formulas take, however a kernel tiles them.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>

#include "../op/attention.hpp"
#include "../op/matmul.hpp"
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
  const auto in = [&](int k) -> const shape& { return p.operands[std::size_t(s.operands + k)].dims; };
  const shape& out = in(s.inputs);
  const std::int64_t epilogue = s.body_size * out.count();
  if (s.op->kind == op_kind::elementwise || s.op->name == "elementwise") return std::max(epilogue, out.count());
  if (s.op == &info<op::matmul>) return 2 * out.count() * in(0)[-1] + epilogue;
  const bool backward = s.op == &info<op::attention_grad>;
  if (backward || s.op == &info<op::attention>) {
    const std::int64_t H = s.attr.i[0], G = s.attr.i[1];
    const bool packed = s.attr.i[3] != 0;
    const std::int64_t S = in(0)[1], T = packed ? S : in(1)[1], D = in(0)[2] / (packed ? H + 2 * G : H);
    return (backward ? 10 : 4) * in(0)[0] * H * D * op::attention_range(s.attr, S, T).pairs();
  }
  const std::string_view what = s.op->name;
  if (what == "fft" || what == "rfft" || what == "irfft") {
    const std::int64_t N = what == "fft" ? out[-2] : s.attr.i[0],
                       numbers = (what == "rfft" ? in(0) : out).count();  // two to a complex point
    return 5 * numbers * std::int64_t(std::bit_width(std::uint64_t(std::max(N, std::int64_t(1)) - 1))) / 2;
  }
  for (const std::string_view mover : {"copy", "concat", "split", "embedding", "fill"})
    if (what == mover) return 0;
  std::int64_t largest = 0;
  for (int k = 0; k < s.inputs + s.outputs; ++k) largest = std::max(largest, in(k).count());
  return largest;
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
