#pragma once
/// Attention on matrix units: whether a step can run there, and its tiles. attention/matrix.glsl mirrors the sizes.
#include <string_view>

#include <isotope/kernels/vulkan/attention/heads.hpp>

namespace isotope::vulkan {

/// Returns the side of a square matrix that the device multiplies with f32 sums, or 0.
inline std::int64_t matrix_side(const device_limits& device, dtype t) {
  if (device.switches.no_matrix_units) return 0;
  for (const auto& m : device.matrices)
    if (m.type == t && m.accumulator == dtype::f32 && m.m == m.n && m.n == m.k && m.m % 8 == 0) return m.m;
  return 0;
}

/// The work of one workgroup: each subgroup owns `strips` strips of `side` rows and walks tiles of `columns` rows.
struct attention_matrix_tiles {
  std::int64_t subgroups, strips, columns, side;

  std::int64_t rows() const { return subgroups * strips * side; }
  /// @param crossings  matrices of a strip that are in shared memory at a time
  /// @param row_values, column_values  floats beside each row and column
  std::int64_t shared_bytes(std::int64_t D, std::int64_t crossings, std::int64_t row_values, std::int64_t column_values) const {
    const std::int64_t tiles = 2 * columns * (2 * D + 16), crossing = crossings * rows() * (2 * columns + 16);
    return tiles + crossing + 4 * (row_values * rows() + column_values * columns + side * side);
  }
};

/// Returns why a step does not run on matrix units; empty if it does.
inline std::string_view matrix_refusal(const attention_heads& h, const launch& l) {
  const device_limits& device = *l.device;
  const dtype t = h.q.type;
  if (device.switches.no_matrix_units) return "matrix units are switched off";
  if (t == dtype::f32) return "matrix units multiply no f32";
  const auto side = matrix_side(device, t);
  if (side == 0) return "the device has no square matrix product of this format";
  for (const head_rows* x : {&h.k, &h.v, &h.y, &h.dy, &h.dq, &h.dk, &h.dv})
    if (x->at != 0 && x->type != t) return "operands differ in format";
  if (h.D % side != 0 || h.D > 128) return "the head size is not a multiple of the matrix side up to 128";
  if (!h.aligned(8)) return "rows do not start at multiples of 16 bytes";
  if (!(h.scale > 0)) return "the scale of the scores is not positive";
  if (h.T == 0) return "there are no keys";
  return {};
}

/// Returns the largest tiles of `wanted` that fit. It narrows tiles first, then takes fewer subgroups; it takes at most twice `rows` rows.
inline attention_matrix_tiles fitting_tiles(attention_matrix_tiles t, const launch& l, std::int64_t rows, std::int64_t D,
                                            std::int64_t crossings, std::int64_t row_values, std::int64_t column_values) {
  const auto fits = [&] {
    return t.shared_bytes(D, crossings, row_values, column_values) <= std::int64_t(l.device->shared_bytes) &&
           t.subgroups * std::int64_t(l.device->subgroup) <= std::int64_t(l.device->invocations);
  };
  while (t.subgroups > 1 && t.rows() >= 2 * rows) t.subgroups /= 2;
  while (!fits() && t.columns > 2 * t.side) t.columns /= 2;
  while (!fits() && t.subgroups > 1) t.subgroups /= 2;
  return t;
}

}  // namespace isotope::vulkan
