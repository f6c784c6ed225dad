#pragma once
/// Kernels that work row by row or over flat regions: how rows are distributed to warps and blocks. teams.cuh mirrors it.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include <isotope/backend/cuda/launch.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>

namespace isotope::cuda::portable {

constexpr std::int64_t divide_up(std::int64_t n, std::int64_t d) { return (n + d - 1) / d; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t d) { return divide_up(n, d) * d; }

/// Whether kernels can read the format as f32.
inline bool loads_as_f32(dtype t) { return t == dtype::f32 || t == dtype::bf16 || t == dtype::f16; }
template <class... V> bool all_load_as_f32(const V&... v) { return (loads_as_f32(v.type) && ...); }
/// Whether accesses of 16 bytes are aligned.
template <class... V> bool all_aligned(const V&... v) { return ((v.at % 16 == 0) && ...); }
/// Elements of a format in 16 bytes.
inline std::int64_t vector_elems(dtype t) { return 16 / size_of(t); }

/// The instances of a kernel for each format.
struct by_format {
  std::string_view f32, bf16, f16;
  std::string_view of(dtype t) const { return t == dtype::f32 ? f32 : t == dtype::bf16 ? bf16 : f16; }
};

/// Rows are at most this long: device code counts columns with 32 bits.
inline constexpr std::int64_t longest_row = std::int64_t(1) << 30;

/// Threads of a row: a warp, or a block for long rows. A row that is not `held` in registers is read part by part.
struct row_team {
  std::int32_t size = 32;
  bool held = true;
  grid blocks;

  /// `each`: columns of a row that a thread holds; `most`: threads of the largest block.
  static row_team of(const device_limits& d, std::int64_t rows, std::int64_t columns, std::int64_t each, std::int64_t most) {
    row_team t;
    const std::int64_t wanted = divide_up(columns, each);
    t.held = wanted <= most;
    t.size = std::int32_t(wanted <= 32 ? 32 : std::min(most, round_up(wanted, 32)));
    std::int64_t threads = t.size == 32 ? 256 : t.size;
    while (t.size == 32 && threads > 32 && divide_up(rows, threads / 32) < 2 * d.multiprocessors) threads /= 2;
    // Blocks go on with further rows, so that no more are needed than run at a time.
    const std::int64_t together = std::max<std::int64_t>(1, d.multiprocessors) * std::min<std::int64_t>(32, 2048 / threads);
    t.blocks = per_block(std::min(divide_up(rows, threads / t.size), together), std::uint32_t(threads));
    return t;
  }
};

/// The range of n elements of format t at an address.
inline range elements(std::uint64_t at, std::int64_t n, dtype t) { return {at, n * size_of(t)}; }

/// Leaves a launch to the reference kernel, for shapes and formats without a fast kernel.
template <class Op, class P> void fall_through(const launch& l, recording& r, std::string_view why) {
  enter_set(r, kernels::reference::name, why);
  kernel<Op, P, kernels::reference>::record(l, r);
}
/// The scratch that the reference kernel needs.
template <class Op, class P> constexpr std::int64_t scratch_below(const step_shapes& s) {
  if constexpr (requires { kernel<Op, P, kernels::reference>::scratch(s); }) return kernel<Op, P, kernels::reference>::scratch(s);
  else return 0;
}

}  // namespace isotope::cuda::portable
