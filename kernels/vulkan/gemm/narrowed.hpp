#pragma once
/// A gemm of f32 activations with f16 weights on matrix units: the activations are rounded to f16 in scratch once, and a 16-bit gemm follows. It
/// costs a copy of 6 bytes per activation and a barrier; rounding while tiles are staged would read the wide rows once for each column of tiles, more
/// bytes in all from four columns on. Activations beyond 65504 become infinite, so that a program with such values fails visibly.
#include <array>

#include <isotope/kernels/vulkan/gemm/push.hpp>
#include <isotope/kernels/vulkan/gemm/split.hpp>
#include <isotope/kernels/vulkan/portable/cast.hpp>

namespace isotope::vulkan {

template <class P> class matmul_narrowed {
 public:
  /// Returns the bytes of rounded activations, which follow the scratch of the gemm itself.
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t own = matmul_split::scratch(s);
    return s.constants<op::matmul>().half_weight ? start(own) + 2 * s.in[0].count() : own;
  }
  static bool needed(const matmul_job& j) { return j.s.a.type == dtype::f32 && j.s.b.type == dtype::f16; }

  /// Returns why the activations of such a gemm stay f32; empty if they are rounded.
  static std::string_view obstacle(const launch& l) {
    const kernel_switches& s = l.device->switches;
    if (s.force_wide) return "activations stay f32: asked for";
    if (!s.no_auto_wide && l.oscillation > s.oscillation_threshold) return "activations stay f32: the weights oscillate";
    return {};
  }

  /// Calls next(the gemm of f16 operands, r).
  template <class Record> static void record(const launch& l, recording& r, const Record& next) {
    const view& wide = l.in[0];
    view half = wide;
    half.type = dtype::f16;
    half.strides = dense_strides(half.dims);
    half.bytes = 2 * half.dims.count();
    half.at = l.scratch + std::uint64_t((l.scratch_bytes - half.bytes) / 256 * 256);
    const attributes to = op::cast::constants{.to = dtype::f16};
    launch rounding = l;
    rounding.in = {&wide, 1};
    rounding.out = {&half, 1};
    rounding.attr = &to;
    rounding.body = {};
    rounding.accumulate = 0;
    const auto set = r.set, reason = r.reason;
    kernel<op::cast, P, kernels::portable>::record(rounding, r);
    enter_set(r, set, reason);

    std::array<view, max_inputs> in{};
    for (std::size_t k = 0; k < l.in.size(); ++k) in[k] = l.in[k];
    in[0] = half;
    launch narrow = l;
    narrow.in = std::span<const view>(in.data(), l.in.size());
    next(matmul_job(narrow), r);
  }

 private:
  static constexpr std::int64_t start(std::int64_t own) { return (own + 255) / 256 * 256; }
};

}  // namespace isotope::vulkan
