#pragma once
/// Attention on matrix units: whether a step can run there, and its tiles. attention/matrix.glsl mirrors the sizes.
#include <array>
#include <string>
#include <string_view>

#include <isotope/kernels/vulkan/attention/work.hpp>

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

  constexpr std::int64_t rows() const { return subgroups * strips * side; }
  /// @param crossings  matrices of a strip that are in shared memory at a time
  /// @param row_values, column_values  floats beside each row and column
  constexpr std::int64_t shared_bytes(std::int64_t D, std::int64_t crossings, std::int64_t row_values, std::int64_t column_values) const {
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

/// Tiles in units of the device's matrices, as a variant of one of the three kernels. The gradient's kernels have one strip per subgroup.
template <attention_part Part> struct attention_matrix_variant {
  std::int64_t subgroups, strips, columns;
  double speed;      // TFLOP/s of an H200 with heads of 64 elements
  double alone = 0;  // where each head lies in one tile of eight subgroups, and has a multiprocessor for itself; 0: as `speed`

  constexpr attention_matrix_tiles tiles(std::int64_t side) const { return {subgroups, strips, columns * side, side}; }
  constexpr std::string_view unfit(const attention_work& w) const {
    constexpr std::int64_t crossings = Part == attention_part::keys ? 2 : 1, column_values = crossings,
                           row_values = Part == attention_part::y      ? 3
                                        : Part == attention_part::keys ? 1
                                                                       : 2;
    if (tiles(w.side).shared_bytes(w.D, crossings, row_values, column_values) > std::int64_t(w.device->shared_bytes))
      return "it takes more shared memory than a workgroup has";
    if (subgroups * std::int64_t(w.device->subgroup) > std::int64_t(w.device->invocations))
      return "its workgroups have more invocations than the device's";
    return {};
  }
  /// Rows that a workgroup owns behind the last one of a head take as long as others.
  constexpr attention_cost cost_of(const attention_work& w) const {
    const std::int64_t own = tiles(w.side).rows();
    // Whole workgroups are counted. NOLINTNEXTLINE(bugprone-integer-division)
    const double owned = double((w.rows + own - 1) / own * own);
    const bool few = alone > 0 && w.heads > 0 && w.heads <= std::int64_t(w.device->multiprocessors) && w.rows <= 8 * w.side;
    return {w.seconds(owned, few ? alone : speed)};
  }
  std::string name(const attention_cost&) const {
    return std::string(prefix_of(Part)) + std::to_string(subgroups) + " subgroups of " + std::to_string(strips) + " x " +
           std::to_string(columns) + " matrices";
  }
};

/// Returns the fastest tiles that fit; with one subgroup where none does.
template <class Variants> attention_matrix_tiles fitting_tiles(const Variants& all, const attention_work& w, kernel_choices* considered) {
  const auto c = choose_kernel(all, w, considered);
  return c.variant == nullptr ? attention_matrix_tiles{1, 1, 2 * w.side, w.side} : c.variant->tiles(w.side);
}

}  // namespace isotope::vulkan
