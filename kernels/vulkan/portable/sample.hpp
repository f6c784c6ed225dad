#pragma once
/// Draws tokens from logits by radix selection.
#include <isotope/kernels/vulkan/reference/sample.hpp>
#include <isotope/kernels/vulkan/rows/rows.hpp>
#include <isotope/shaders/sample.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::sample, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::sample, P>(s); }
  static void record(const launch& l, recording& r) {
    const sample_operands o(l);
    if (o.push.N == 0) return;
    // llvmpipe loses invocations of a subgroup in loops that follow a barrier and a condition.
    if (l.device->multiprocessors < few_units) return portable::fall_through<op::sample, P>(l, r, "the driver runs on a processor");
    if (!portable::loads_as_f32(o.logits)) return portable::fall_through<op::sample, P>(l, r, "the format is not f32, bf16 or f16");
    // Digits of 11 bits need 3 passes, those of 8 bits 4.
    const std::int64_t words = portable::divide_up(o.push.V, 32), invocations = portable::largest_workgroup(*l.device);
    const auto fits = [&](std::int64_t digit) {
      return (std::int64_t(8) << digit) + 4 * words + 2048 <= std::int64_t(l.device->shared_bytes);
    };
    if (!fits(8)) return portable::fall_through<op::sample, P>(l, r, "there are more tokens than bits in shared memory");
    r.add(shaders::sample, constants{portable::word(invocations), l.device->subgroup}.add(o.logits).add(fits(11) ? 11 : 8).add(words),
          o.push, cover(o.push.N, 1), sample_operands::reads(l), {l.out[0], l.out[1], l.out[2]})
        .subgroup = l.device->subgroup;
  }

 private:
  static constexpr std::uint32_t few_units = 8;
};

}  // namespace isotope::vulkan
