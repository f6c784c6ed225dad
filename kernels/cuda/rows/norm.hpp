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
/// Small blocks spread few rows over the multiprocessors.
inline grid norm_short_blocks(const device_limits& d, std::int64_t rows) {
  std::int64_t warps = 8;
  while (warps > 2 && divide_up(rows, warps * gpu::norm_short_rows) < 2 * d.multiprocessors) warps /= 2;
  const std::int64_t together = std::max<std::int64_t>(1, d.multiprocessors) * 16 / warps;
  return per_block(std::min(divide_up(rows, warps * gpu::norm_short_rows), together), std::uint32_t(32 * warps));
}
inline void record_norm(const launch& l, recording& r, const norm_operands& o) {
  constexpr by_format functions{"norm_f32", "norm_bf16", "norm_f16"},
      functions_of_short{"norm_short_f32", "norm_short_bf16", "norm_short_f16"};
  const std::int64_t C = o.x->dims.cols(), rows = o.rstds->dims.count();
  if (rows == 0) return;
  const bool centered = o.bias != nullptr;
  const bool wide = C % vector_elems(o.x->type) == 0 && all_aligned(*o.x, *o.weight, *o.y) && (!centered || all_aligned(*o.bias));
  const bool is_short = wide && C <= gpu::norm_short_columns;
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
  r.add(fatbins::norm, (is_short ? functions_of_short : functions).of(o.x->type), a,
        is_short ? norm_short_blocks(*l.device, rows) : t.blocks, std::move(reads), std::move(writes));
}

/// Partial sums of weight gradients: each block gives one row of them. A block has as many teams as norm_grad_threads allow. There are as
/// many blocks as run at a time, 2 on a multiprocessor or, in blocks of one large team, 1,024 threads: more blocks write more sums. Fewer
/// suffice if they take as many turns.
struct norm_parts {
  static constexpr std::int64_t most_multiprocessors = 160, most_threads = 1024;
  static constexpr std::int64_t team(std::int64_t C, std::int64_t vector) { return round_up(divide_up(C, vector), 32); }
  static constexpr std::int64_t teams(std::int64_t team) {
    return std::max<std::int64_t>(1, gpu::norm_grad_threads / std::max<std::int64_t>(1, team));
  }
  static constexpr bool large(std::int64_t team) { return team > gpu::norm_grad_threads; }
  static constexpr std::int64_t of(std::int64_t rows, std::int64_t team, std::int64_t multiprocessors) {
    const std::int64_t each = large(team) ? std::clamp<std::int64_t>(1024 / team, 1, 2) : 2;
    const std::int64_t together = each * std::clamp<std::int64_t>(multiprocessors, 1, most_multiprocessors);
    const std::int64_t turn = gpu::norm_grad_rows_at_once * teams(team);  // rows
    return divide_up(rows, turn * std::max<std::int64_t>(1, divide_up(rows, turn * together)));
  }
  static constexpr std::int64_t scratch(std::int64_t rows, std::int64_t C, int kinds) {
    const std::int64_t parts = std::max(of(rows, team(C, 4), most_multiprocessors), of(rows, team(C, 8), most_multiprocessors));
    return 4 * kinds * C * parts;
  }
};

struct norm_grad_operands {
  // means and dbias are null for root mean square; addend may be null
  const view *x, *weight, *means, *rstds, *dy, *addend, *dx, *dweight, *dbias;
};
inline void record_norm_grad(const launch& l, recording& r, const norm_grad_operands& o) {
  const std::int64_t C = o.x->dims.cols(), rows = o.rstds->dims.count();
  if (C == 0) return;
  const bool centered = o.dbias != nullptr;
  const bool wide =
      C % vector_elems(o.x->type) == 0 && all_aligned(*o.x, *o.weight, *o.dy, *o.dx) && (o.addend == nullptr || all_aligned(*o.addend));
  const std::int64_t kinds = centered ? 2 : 1, team = norm_parts::team(C, vector_elems(o.x->type));
  const std::int64_t parts = norm_parts::of(rows, team, l.device->multiprocessors);
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
        large{"norm_grad_large_f32", "norm_grad_large_bf16", "norm_grad_large_f16"};
    r.add(fatbins::norm_grad, (norm_parts::large(team) ? large : small).of(o.x->type), a,
          per_block(parts, std::uint32_t(team * norm_parts::teams(team))), std::move(weighted), {*o.dx, partial});
  } else if (rows > 0) {
    constexpr by_format weights{"norm_grad_weights_f32", "norm_grad_weights_bf16", "norm_grad_weights_f16"},
        each_row{"norm_grad_rows_f32", "norm_grad_rows_bf16", "norm_grad_rows_f16"};
    grid blocks = per_block(divide_up(C, 256), 256);
    blocks.y = std::uint32_t(parts);
    r.add(fatbins::norm_grad, weights.of(o.x->type), a, blocks, std::move(inputs), {partial});
    r.add(fatbins::norm_grad, each_row.of(o.x->type), a, per_block(rows, 1024), std::move(weighted), {*o.dx});
  }
  columns c{.rows = parts, .cols = kinds * C, .pitch = kinds * C};
  if (centered) c.second = o.dbias, c.split = C;
  record_column_sum(r, c, partial, *o.dweight, 0);
}

}  // namespace isotope::cuda::portable
