#pragma once
/// Writes docs/NUMERICS.md from the specifications.
#include <isotope/conform/spec.hpp>

#include <span>
#include <string>

namespace conform_program {

inline std::string policy_table(std::span<const isotope::conform::spec* const> ops) {
  std::string text =
      R"(# What ops promise of their arithmetic

Written by `isotope-conform plan --policy`; a test compares the two. isotope-conform holds every kernel to it. Arithmetic is in the accumulation
format, f32: its roundoff u is 2^-24, the program's own, s, is 0 in f32 and 2^-8 in bf16, whose results are rounded once more. A result is
compared with the reference in f64 on the same operands.

`ULP` are the units in the last place that an exponential, a logarithm and the like may be off by, on a processor and on a gpu (there 1e-7 at
least), and from which the bounds of ops that use them follow; `-`: the op has none. Where a result is rounded to 16 bits, an element-wise function may
be off by s / 128 besides, on a processor. Processors keep subnormal numbers but where the table says otherwise; a gpu may take them for zero where it says so. No op gives NaN
for finite operands unless its formula does.

VK_KHR_shader_float_controls lets a kernel ask that subnormal numbers of f32 be kept or flushed, that signed zeros, infinities and NaN be kept, and
that results be rounded to nearest even. No kernel asks for any of it, for three reasons. A device need offer none of these modes, so that each kernel
would be there twice, and what one form showed would say nothing of the other. The bounds below do not need them: they take a subnormal number and
zero alike where the table says so, and signed zeros, infinities and NaN are cases that every device must pass as it is. And devices round sums and
products correctly in any case; whether to nearest even or toward zero, a certificate records as it was seen. isotope-info and certificates
(`arithmetic`, "f32 modes") say what a device offers.

| what | bound |
|---|---|
| matrix products | NMSE <= 1e-15 (K + 8) in f32, and \|e\| <= (8 + chain) u sum \|a b\|; chain is the longest serial sum, which the kernel declares |
| products in f32 of at least 128 rows with weights that are packed once, on a matrix unit for bf16 (AMX), where the plan is not batch invariant | as matrix products in f32, with other bits than those of vector instructions, which make the products of fewer rows. Weights have at least 32 columns and 96 terms. Each number is the sum of three pieces of 8 bits in bf16, exactly where its magnitude is at least 2^-103 and rounds to a finite bf16. Six of the nine products of pieces are added in f32; the others, of the middle and the lower pieces, are at most 2^-23 \|a b\| together, and 2^-25 in the mean. The longest serial sum is 6 for each tile of 32 terms of a block of at most 768, 1 for each block, and 20, less than that of vectors. A sum is computed again by vector instructions if what the unit flushed may be more than 2^-24 of it, if it is not finite, or if the weight's column has numbers that are not such sums (Henry, Tang & Heinecke 2019, arXiv 1904.06376) |
| products of a8: activations x in 8 bits, with q8_0 or q4_0 weights | as matrix products of the rounded x: 32 along K have d = max\|x\| / 127 in f32, and x becomes d round(x / d), off by d / 2 at most. So results are off by sum d \|w\| / 2 besides. Codes are summed as integers; blocks are added in ascending order, each by a product and a fused multiply-add: a row has the same bits for any number of rows. A block with inf or NaN, or with such a scale of the weight, gives NaN. In bf16 programs x are those of the activations in bf16, and the sum is rounded to bf16. Only where it is asked for (`--a8`, the parameter `a8` of plan_inference) |
| products of bf16 activations and weights in q8_0 or q4_0, without a8 | as matrix products with the weights' elements rounded to bf16, each of which is off by \|w\| / 256 at most. Activations of bf16 are off by \|x\| / 256 at most, those of a8 by m / 254, m = max\|x\| of 32 along K |
| other results in f32 | NMSE <= 1e-11, of attention and its gradients 1e-9, and a hundredth of the mean square of the elements' bounds besides |
| results in bf16 | NMSE <= 6e-6, of attention 1.5e-5, and a fifth of the mean square of the bounds besides; and \|e\| <= s \|y\| + the bound of f32 |
| softmax, log_softmax, cross_entropy, norms | NMSE <= 1e-12 in f32, also after a number was added to all logits; cross_entropy's gradient likewise; layer_norm of means beyond 10 deviations 1e-10 |
| moves, casts, comparisons, integers | the same bits |
| rope | \|e\| <= 4 u of the pair's length, at positions up to 131,072 |
| Fourier transforms | \|e\| <= 4 u log2 n of the row's length |
| adamw | \|e\| <= 2 u \|w\| + 16 u lr (\|b1 m\| + \|(1 - b1) g\|) / ((sqrt(v / (1 - b2^t)) + eps) (1 - b1^t)) |
| gradients | the op's own bound, with the sum of magnitudes where a result cancels; and <dx, u> = <dy, J u> |
| gradients of attention in bf16 | NMSE <= 3e-5, and four times what the rounding of y leaves |
| means of n terms that count, n < 100 | 100 / n times the bound on the NMSE |

| op | order of its sums | fused multiply-add | subnormal numbers on a gpu | NaN | ULP cpu | ULP gpu |
|---|---|---|---|---|---|---|
)";
  const auto ulps = [](std::int32_t n) { return n == 0 ? std::string("-") : std::to_string(n); };
  for (const isotope::conform::spec* s : ops) {
    const auto& p = s->policy;
    text += "| " + std::string(s->name) + " | " + std::string(p.sums) + " | " + (p.contracts ? "yes" : "no") + " | " +
            (p.flushes_on_gpu ? "may be zero" : "kept") + (p.flushes_pairs ? "; of 16 bits on a processor, too" : "") + " | " +
            std::string(p.nan) + " | " + ulps(p.cpu_ulps) + " | " + ulps(p.gpu_ulps) + " |\n";
  }
  return text;
}

}  // namespace conform_program
