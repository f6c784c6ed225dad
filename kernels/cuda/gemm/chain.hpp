#pragma once
/// Recognises fused bodies that are chains: each instruction works on the previous result and at most one operand. Epilogues run them on
/// eight elements in registers; those of GPT-2 and BERT are bias, bias and residual, bias and GELU (both results stored), and the gradient of GELU.
#include <isotope/kernels/cuda/gemm/gemm.h>
#include <isotope/kernels/cuda/body/body.hpp>

namespace isotope::cuda {

/// Fills in the chain of `g` if the body of l is one that chain_eight (gemm/epilogue.cuh) runs and rows are whole and aligned for it. N:
/// the length of rows.
inline bool chain_of(const launch& l, const fused_body& body, gpu::gemm& g) {
  constexpr std::array<std::uint8_t, 11> codes{0, 2, 4, 18, 19, 22, 23, 24, 54, 55, 56};
  const auto in_list = [&](std::uint32_t code) { return std::find(codes.begin(), codes.end(), code) != codes.end(); };
  const body_form& f = body.form();
  if (f.instructions > gpu::chain_steps || !body.known() || l.accumulate != 0) return false;
  const shape& dims = l.out[0].dims;
  std::array<gpu::chain_operand, gpu::chain_operands> operands{};
  std::array<int, gpu::chain_operands> of{};
  std::array<gpu::chain_step, gpu::chain_steps> steps{};
  int used = 0;

  // The place of input k among the operands, or -1 if the chain cannot read it.
  const auto place_of = [&](int k) {
    for (int i = 0; i < used; ++i)
      if (of[std::size_t(i)] == k) return i;
    const view& x = l.in[std::size_t(k)];
    const bool floating = x.type == dtype::f32 || x.type == dtype::bf16;
    if (used == gpu::chain_operands || !floating) return -1;
    bool dense = true, row = true, one = true;
    std::int64_t step = 1;
    for (int i = dims.rank - 1; i >= 0; --i) {
      const std::int64_t stride = stride_along(x, i, dims.rank);
      if (dims[i] != 1) {
        dense = dense && stride == step;
        row = row && stride == (i == dims.rank - 1 ? 1 : 0);
        one = one && stride == 0;
      }
      step *= dims[i];
    }
    if (!(dense || row || one) || (!one && x.at % 16 != 0)) return -1;
    operands[std::size_t(used)] = {x.at, std::int32_t(x.type), one || row ? 0 : 1, one ? 0 : 1};
    of[std::size_t(used)] = k;
    return used++;
  };

  for (int j = 0; j < f.instructions; ++j) {
    const micro_op& m = f.body[std::size_t(j)];
    const std::uint32_t code = instruction_code(m.op, m.type);
    if (!in_list(code) || (m.type != dtype::f32 && m.type != dtype::bf16)) return false;
    const int previous = j == 0 ? int(isotope::gemm_result) : int(max_inputs) + j - 1;
    gpu::chain_step& s = steps[std::size_t(j)];
    s = {std::uint8_t(code), std::uint8_t(m.type), -1, 0, 0, m.store, float(m.scalar)};
    const bool one_argument = m.arg[1] == -1;
    if (one_argument) {
      if (m.arg[0] != previous) return false;
      continue;
    }
    if (m.arg[2] != -1) return false;
    if (m.arg[0] == previous && m.arg[1] == previous) {
      s.both = 1;
      continue;
    }
    const bool first = m.arg[1] == previous;
    const int other = m.arg[first ? 0 : 1];
    if ((!first && m.arg[0] != previous) || other < 0 || other >= max_inputs) return false;
    const int place = place_of(other);
    if (place < 0) return false;
    s.operand = std::int8_t(place);
    s.operand_first = first;
  }
  for (std::size_t k = 0; k < l.out.size(); ++k) {
    if (l.out[k].at % 16 != 0) return false;
    g.out[k] = l.out[k].at;
    g.out_type[k] = std::int32_t(l.out[k].type);
  }
  g.steps = f.instructions;
  std::copy(steps.begin(), steps.end(), g.chain);
  std::copy(operands.begin(), operands.end(), g.operands);
  return true;
}

/// Whether the product and all operands and results of its chain are f32.
inline bool all_f32(const gpu::gemm& g) {
  constexpr auto f32 = std::int32_t(dtype::f32);
  bool all = g.product_type == f32;
  for (int j = 0; j < g.steps; ++j) {
    const gpu::chain_step& s = g.chain[j];
    all = all && s.type == f32 && (s.store < 0 || g.out_type[s.store] == f32) && (s.operand < 0 || g.operands[s.operand].type == f32);
  }
  return all;
}

/// Returns the case of finish_tile.cuh that finishes the sums of g.
inline std::int32_t case_of(const gpu::gemm& g) {
  constexpr auto f32 = std::int32_t(dtype::f32), bf16 = std::int32_t(dtype::bf16);
  if (g.eights == 0 || g.swapped != 0) return gpu::case_other;
  if (g.finish == gpu::finish_partial) return gpu::case_partial;
  if (g.beta != 0) return gpu::case_other;
  if (g.finish == gpu::finish_store) {
    if (g.product_type == f32 && g.y_type == f32) return g.accumulate != 0 ? gpu::case_add_f32 : gpu::case_store_f32;
    return g.product_type == bf16 && g.y_type == bf16 && g.accumulate == 0 ? gpu::case_store_bf16 : gpu::case_other;
  }
  if (g.finish != gpu::finish_chain) return gpu::case_other;
  if (all_f32(g)) return gpu::case_chain_f32;
  if (g.product_type != bf16 || g.steps > 2) return gpu::case_other;
  constexpr std::uint32_t add = std::uint32_t(instruction_number(&info<op::add>));
  constexpr std::uint32_t gelu = instruction_code(&info<op::gelu_tanh>, dtype::bf16),
                          gelu_grad = instruction_code(&info<op::gelu_tanh_grad>, dtype::bf16),
                          gelu_erf = instruction_code(&info<op::gelu_erf>, dtype::bf16);
  for (int j = 0; j < g.steps; ++j) {
    const gpu::chain_step& s = g.chain[j];
    if (s.type != bf16 || s.both != 0 || (s.store >= 0 && g.out_type[s.store] != bf16)) return gpu::case_other;
    if (s.operand >= 0 && (s.operand != j || g.operands[j].type != bf16 || g.operands[j].column == 0)) return gpu::case_other;
  }
  const gpu::chain_step &first = g.chain[0], &last = g.chain[g.steps - 1];
  if (first.operand < 0 || last.store < 0) return gpu::case_other;
  const bool dense = g.operands[0].row != 0;
  if (g.steps == 1) {
    if (first.code == add) return dense ? gpu::case_residual : gpu::case_bias;
    return first.code == gelu_grad && dense && first.operand_first != 0 ? gpu::case_gelu_grad : gpu::case_other;
  }
  if (first.code != add || dense) return gpu::case_other;
  if (last.code == gelu) return gpu::case_bias_gelu;
  if (last.code == gelu_erf) return gpu::case_bias_gelu_erf;
  return last.code == add && last.operand == 1 && g.operands[1].row != 0 && first.store < 0 ? gpu::case_bias_residual : gpu::case_other;
}

}  // namespace isotope::cuda
