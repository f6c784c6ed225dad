#pragma once
/// What layer_norm and rms_norm share.
#include <isotope/kernels/cuda/portable/norm.h>
#include <isotope/fatbins/norm.hpp>
#include <isotope/fatbins/norm_grad.hpp>

#include "column_sum.hpp"

namespace isotope::cuda::portable {

struct norm_operands {
  const view *x, *weight, *bias, *y, *means, *rstds;  // bias and means are null for root mean square
  double epsilon;
};
/// The kernel of rows that a warp takes whole, and its blocks. Small blocks spread few rows over the multiprocessors.
struct norm_short {
  static constexpr std::int64_t most_blocks = 1 << 24;
  std::string_view function;
  grid blocks;

  static norm_short of(const device_limits& d, std::int64_t rows, std::int64_t C, dtype t) {
    constexpr by_format functions[] = {{"norm_up_to_256_f32", "norm_up_to_256_bf16", "norm_up_to_256_f16"},
                                       {"norm_up_to_512_f32", "norm_up_to_512_bf16", "norm_up_to_512_f16"},
                                       {"norm_up_to_768_f32", "norm_up_to_768_bf16", "norm_up_to_768_f16"},
                                       {"norm_up_to_1024_f32", "norm_up_to_1024_bf16", "norm_up_to_1024_f16"}};
    const std::size_t k = std::size_t(divide_up(C, gpu::norm_short_step) - 1);
    const gpu::norm_short_size size = (t == dtype::f32 ? gpu::norm_short_of_f32 : gpu::norm_short_of_16_bits)[k];
    std::int64_t warps = 4;
    while (warps > 2 && divide_up(rows, warps * size.rows) < 2 * d.multiprocessors) warps /= 2;
    const std::int64_t most = size.blocks == 0 ? most_blocks : std::max<std::int64_t>(1, d.multiprocessors) * size.blocks * 8 / warps;
    const std::int64_t blocks = std::min(divide_up(rows, warps * size.rows), most);
    return {functions[k].of(t), per_block(blocks, std::uint32_t(32 * warps))};
  }
};
inline void record_norm(const launch& l, recording& r, const norm_operands& o) {
  constexpr by_format functions{"norm_f32", "norm_bf16", "norm_f16"};
  const std::int64_t C = o.x->dims.cols(), rows = o.rstds->dims.count();
  if (rows == 0) return;
  const bool centered = o.bias != nullptr;
  const bool wide = C % vector_elems(o.x->type) == 0 && all_aligned(*o.x, *o.weight, *o.y) && (!centered || all_aligned(*o.bias));
  const row_team t = row_team::of(*l.device, rows, C, gpu::norm_elems, 512);
  const gpu::norm_operands a{o.x->at,
                             o.weight->at,
                             centered ? o.bias->at : 0,
                             o.y->at,
                             centered ? o.means->at : 0,
                             o.rstds->at,
                             rows,
                             std::int32_t(C),
                             t.size,
                             std::int32_t(o.weight->type),
                             centered ? std::int32_t(o.bias->type) : 0,
                             centered,
                             wide,
                             t.held,
                             float(o.epsilon)};
  std::vector<range> reads{*o.x, *o.weight}, writes{*o.y, *o.rstds};
  if (centered) {
    reads.push_back(*o.bias);
    writes.push_back(*o.means);
  }
  if (wide && C > 0 && C <= gpu::norm_short_columns) {
    const norm_short n = norm_short::of(*l.device, rows, C, o.x->type);
    r.add(fatbins::norm, n.function, a, n.blocks, std::move(reads), std::move(writes)).starts_early = true;
  } else {
    r.add(fatbins::norm, functions.of(o.x->type), a, t.blocks, std::move(reads), std::move(writes)).starts_early = true;
  }
}

/// Partial sums of weight gradients: each block gives one row of them. A block has as many teams as norm_grad_size allows. There are as
/// many blocks as run at a time, 2 on a multiprocessor or, in blocks of one large team, 1,024 threads: more blocks write more sums. Fewer
/// suffice if they take as many turns.
struct norm_parts {
  static constexpr std::int64_t most_multiprocessors = 160, most_threads = 1024;
  static constexpr std::int64_t team(std::int64_t C, std::int64_t vector) { return round_up(divide_up(C, vector), 32); }
  /// `vector`: elements of a row that a thread takes, 4 of f32 or 8 of 16 bits.
  static constexpr gpu::norm_grad_size size(std::int64_t vector) { return vector == 4 ? gpu::norm_grad_of_f32 : gpu::norm_grad_of_16_bits; }
  static constexpr bool large(std::int64_t C, std::int64_t vector) { return team(C, vector) > size(vector).threads; }
  static constexpr std::int64_t teams(std::int64_t C, std::int64_t vector) {
    return std::max<std::int64_t>(1, size(vector).threads / std::max<std::int64_t>(1, team(C, vector)));
  }
  static constexpr std::int64_t of(std::int64_t rows, std::int64_t C, std::int64_t vector, std::int64_t multiprocessors) {
    const std::int64_t each = large(C, vector) ? std::clamp<std::int64_t>(1024 / team(C, vector), 1, 2) : 2;
    const std::int64_t together = each * std::clamp<std::int64_t>(multiprocessors, 1, most_multiprocessors);
    const std::int64_t turn = size(vector).rows_at_once * teams(C, vector);  // rows
    return divide_up(rows, turn * std::max<std::int64_t>(1, divide_up(rows, turn * together)));
  }
  /// Enough for any smaller number of rows, too, which may have more parts.
  static constexpr std::int64_t scratch(std::int64_t rows, std::int64_t C, int kinds) {
    const auto most = [&](std::int64_t vector) {
      return std::min(2 * most_multiprocessors, divide_up(rows, size(vector).rows_at_once * teams(C, vector)));
    };
    return 4 * kinds * C * std::max(most(4), most(8));
  }
};

/// Whether the column sums of dx can be taken on the way, in any format.
constexpr bool norm_grad_sums(const step_shapes& s) { return s.out[0].cols() <= gpu::norm_grad_sums_columns; }

struct norm_grad_operands {
  // means and dbias are null for root mean square; addend and sums, the column sums of dx, may be null
  const view *x, *weight, *means, *rstds, *dy, *addend, *dx, *dweight, *dbias, *sums;
};
inline void record_norm_grad(const launch& l, recording& r, const norm_grad_operands& o) {
  const std::int64_t C = o.x->dims.cols(), rows = o.rstds->dims.count();
  if (C == 0) return;
  const bool centered = o.dbias != nullptr;
  const bool wide =
      C % vector_elems(o.x->type) == 0 && all_aligned(*o.x, *o.weight, *o.dy, *o.dx) && (o.addend == nullptr || all_aligned(*o.addend));
  const std::int64_t kinds = (centered ? 2 : 1) + (o.sums != nullptr ? 1 : 0), vector = vector_elems(o.x->type),
                     team = norm_parts::team(C, vector);
  const std::int64_t parts = norm_parts::of(rows, C, vector, l.device->multiprocessors);
  view partial;
  partial.at = l.scratch;
  partial.bytes = 4 * kinds * C * parts;
  const gpu::norm_grad_operands a{o.x->at,
                                  o.weight->at,
                                  centered ? o.means->at : 0,
                                  o.rstds->at,
                                  o.dy->at,
                                  o.dx->at,
                                  o.addend == nullptr ? 0 : o.addend->at,
                                  partial.at,
                                  rows,
                                  parts,
                                  std::int32_t(C),
                                  std::int32_t(o.weight->type),
                                  centered,
                                  wide,
                                  std::int32_t(team)};
  std::vector<range> inputs{*o.x, *o.rstds, *o.dy};
  if (centered) inputs.push_back(*o.means);
  std::vector<range> weighted = inputs;
  weighted.push_back(*o.weight);
  if (o.addend != nullptr) weighted.push_back(*o.addend);
  if (rows > 0 && team <= norm_parts::most_threads) {
    constexpr by_format small{"norm_grad_f32", "norm_grad_bf16", "norm_grad_f16"},
        large{"norm_grad_large_f32", "norm_grad_large_bf16", "norm_grad_large_f16"},
        small_sums{"norm_grad_sums_f32", "norm_grad_sums_bf16", "norm_grad_sums_f16"},
        large_sums{"norm_grad_sums_large_f32", "norm_grad_sums_large_bf16", "norm_grad_sums_large_f16"};
    const bool is_large = norm_parts::large(C, vector);
    const by_format& functions = o.sums == nullptr ? (is_large ? large : small) : (is_large ? large_sums : small_sums);
    r.add(fatbins::norm_grad, functions.of(o.x->type), a, per_block(parts, std::uint32_t(team * norm_parts::teams(C, vector))),
          std::move(weighted), {*o.dx, partial});
  } else if (rows > 0) {
    constexpr by_format weights{"norm_grad_weights_f32", "norm_grad_weights_bf16", "norm_grad_weights_f16"},
        each_row{"norm_grad_rows_f32", "norm_grad_rows_bf16", "norm_grad_rows_f16"};
    grid blocks = per_block(divide_up(C, 256), 256);
    blocks.y = std::uint32_t(parts);
    r.add(fatbins::norm_grad, weights.of(o.x->type), a, blocks, std::move(inputs), {partial});
    r.add(fatbins::norm_grad, each_row.of(o.x->type), a, per_block(rows, 1024), std::move(weighted), {*o.dx});
  }
  columns c{.rows = parts, .cols = kinds * C, .pitch = kinds * C};
  c.split = C;
  if (centered) c.second = o.dbias, c.third = o.sums;
  else c.second = o.sums;
  record_column_sum(r, c, partial, *o.dweight, 0);
}

}  // namespace isotope::cuda::portable
