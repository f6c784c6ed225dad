#pragma once
/// Accumulation, the gradient norm, clipping and the optimisers over flat regions, bound by bytes.
#include <isotope/fatbins/squares.hpp>
#include <isotope/kernels/cuda/reference/update.hpp>
#include <isotope/op/accumulate.hpp>
#include <isotope/op/adamw.hpp>
#include <isotope/op/clip_norm.hpp>
#include <isotope/op/clip_value.hpp>
#include <isotope/op/global_norm.hpp>
#include <isotope/op/sgd.hpp>

#include <isotope/kernels/cuda/rows/update.hpp>

namespace isotope::cuda {
namespace portable {

/// Sums the squares of a tensor in at most `most_parts` ranges and takes the norm.
struct square_sums {
  static constexpr std::int64_t most_parts = 4096, least_elems = 8192;
  static constexpr std::int64_t elems_of_part(std::int64_t count) {
    return std::max(least_elems, round_up(divide_up(count, most_parts), 1024));
  }
  static constexpr std::int64_t parts(std::int64_t count) { return divide_up(count, elems_of_part(count)); }
  static constexpr std::int64_t scratch(std::int64_t count) { return 8 * std::max<std::int64_t>(1, parts(count)); }

  static void record(const launch& l, recording& r, const view& x, const view& norm) {
    constexpr by_format functions{"squares_f32", "squares_bf16", "squares_f16"};
    const std::int64_t count = x.dims.count(), blocks = parts(count);
    const gpu::squares_operands a{
        x.at, l.scratch, norm.at, l.scalars, count, elems_of_part(count), std::int32_t(x.type), all_aligned(x), std::int32_t(blocks)};
    const range sums(l.scratch, 8 * blocks);
    if (blocks > 0) r.add(fatbins::squares, functions.of(x.type), a, per_block(blocks, 256), {x}, {sums});
    r.add(fatbins::squares, "norm_of_squares", a, per_block(1, 1024), {sums, scalars_of(l)}, {norm});
  }
};

inline gpu::clip_operands clip_of(const launch& l, const view& g, std::uint64_t norm) {
  return {g.at, norm, l.scalars, g.dims.count(), std::int32_t(g.type), all_aligned(g)};
}

}  // namespace portable

template <GpuPrecision P> struct kernel<op::accumulate, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::accumulate, P>(s); }
  static void record(const launch& l, recording& r) {
    const view &x = l.in[1], &into = l.out[0];
    if (into.dims.count() == 0) return;
    if (!is_dense(x.dims, x.strides) || !is_dense(into.dims, into.strides) || !portable::all_load_as_f32(x, into))
      return portable::fall_through<op::accumulate, P>(l, r, "accumulate: operands are strided");
    portable::record_flat(r, x, into, (l.accumulate & 1u) != 0);
  }
};

template <GpuPrecision P> struct kernel<op::global_norm, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::square_sums::scratch(s.in[0].count()); }
  static void record(const launch& l, recording& r) { portable::square_sums::record(l, r, l.in[0], l.out[0]); }
};

template <GpuPrecision P> struct kernel<op::clip_norm, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::square_sums::scratch(s.in[0].count()) + 4; }
  static void record(const launch& l, recording& r) {
    const view& g = l.out[0];
    const std::int64_t count = g.dims.count();
    if (count == 0) return;
    view norm;
    norm.at = l.scratch + std::uint64_t(portable::square_sums::scratch(count));
    norm.bytes = 4;
    portable::square_sums::record(l, r, g, norm);
    r.add(fatbins::update, "clip_norm", portable::clip_of(l, g, norm.at), per_item(portable::divide_up(count, gpu::flat_elems)),
          {g, norm, scalars_of(l)}, {g});
  }
};

template <GpuPrecision P> struct kernel<op::clip_value, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const view& g = l.out[0];
    const std::int64_t count = g.dims.count();
    if (count == 0) return;
    r.add(fatbins::update, "clip_value", portable::clip_of(l, g, 0), per_item(portable::divide_up(count, gpu::flat_elems)),
          {g, scalars_of(l)}, {g});
  }
};

template <GpuPrecision P> struct kernel<op::adamw, P, kernels::portable> {
  static void record(const launch& l, recording& r) { portable::record_update(l, r, "adamw", 2); }
};

template <GpuPrecision P> struct kernel<op::sgd, P, kernels::portable> {
  static void record(const launch& l, recording& r) { portable::record_update(l, r, "sgd", 1); }
};

}  // namespace isotope::cuda
