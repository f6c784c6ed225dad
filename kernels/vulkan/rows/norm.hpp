#pragma once
/// What layer_norm and rms_norm share: rows of C elements are normalised in registers.
#include <isotope/shaders/norm.hpp>
#include <isotope/shaders/norm_grad.hpp>

#include "column_sum.hpp"

namespace isotope::vulkan::portable {

struct norm_operands {
  const view *x, *weight, *bias, *y, *means, *rstds;  // bias and means are null for root mean square
  double epsilon;
};
/// Returns false if rows are too long for registers or have no elements: a mean of nothing is 0 / 0, which not every driver's division gives.
inline bool record_norm(const launch& l, recording& r, const norm_operands& o) {
  const std::int64_t C = o.x->dims.cols(), rows = o.rstds->dims.count();
  if (rows == 0) return true;
  if (C == 0) return false;
  const bool wide = C % 4 == 0 && all_aligned(*o.x, *o.weight, *o.y) && (o.bias == nullptr || aligned(*o.bias));
  const team t = team::holding(*l.device, divide_up(C, 4), 8, 8);
  if (t.hold == 0) return false;
  const struct {
    std::uint64_t x, weight, bias, y, means, rstds;
    std::uint32_t rows;
    float epsilon;
  } push{o.x->at,    o.weight->at,    o.bias == nullptr ? 0 : o.bias->at, o.y->at, o.means == nullptr ? 0 : o.means->at, o.rstds->at,
         word(rows), float(o.epsilon)};
  std::vector<range> reads{*o.x, *o.weight}, writes{*o.y, *o.rstds};
  if (o.bias != nullptr) reads.push_back(*o.bias);
  if (o.means != nullptr) writes.push_back(*o.means);
  r.add(shaders::norm, of_rows(l, t, wide).add(C).add(o.bias != nullptr).add(o.x->type).add(o.weight->type), push, t.take(rows),
        std::move(reads), std::move(writes))
      .subgroup = l.device->subgroup;
  return true;
}

/// Partial sums of weight gradients: at most `most_parts` rows of them, from four workgroups per multiprocessor of a large device.
struct norm_chunks {
  static constexpr std::int64_t most_parts = 528, widest_team = 64;  // teams of a workgroup are at most 64
  static constexpr std::int64_t bound(std::int64_t rows, std::int64_t C, int kinds) {
    return 4 * kinds * C * std::min(most_parts + widest_team, rows + widest_team);
  }
};

struct norm_grad_operands {
  const view *x, *weight, *means, *rstds, *dy, *dx, *dweight, *dbias;  // means and dbias are null for root mean square
};
inline bool record_norm_grad(const launch& l, recording& r, const norm_grad_operands& o) {
  const std::int64_t C = o.x->dims.cols(), rows = o.rstds->dims.count();
  if (C == 0) return true;
  const bool centered = o.dbias != nullptr, wide = C % 4 == 0 && all_aligned(*o.x, *o.weight, *o.dy, *o.dx);
  const team t = team::holding(*l.device, divide_up(C, 4), 2, 4);
  if (t.hold == 0) return false;
  const std::int64_t flight = t.hold == 1 ? 4 : 2, kinds = centered ? 2 : 1;
  const std::int64_t each = round_up(divide_up(rows, std::max<std::int64_t>(1, norm_chunks::most_parts / t.rows())), flight * t.rows());
  const std::int64_t chunks = each == 0 ? 0 : divide_up(rows, each), parts = chunks * t.rows();
  view partial;
  partial.at = l.scratch;
  partial.bytes = 4 * kinds * C * parts;
  if (rows > 0) {
    const struct {
      std::uint64_t x, weight, means, rstds, dy, dx, partial;
      std::uint32_t rows, each;
    } push{o.x->at, o.weight->at, centered ? o.means->at : 0, o.rstds->at, o.dy->at, o.dx->at, partial.at, word(rows), word(each)};
    std::vector<range> reads{*o.x, *o.weight, *o.rstds, *o.dy};
    if (centered) reads.push_back(*o.means);
    r.add(shaders::norm_grad, of_rows(l, t, wide).add(C).add(centered).add(o.x->type).add(o.weight->type).add(flight), push,
          groups{word(chunks)}, std::move(reads), {*o.dx, partial})
        .subgroup = l.device->subgroup;
  }
  const columns c{.rows = parts, .cols = C, .pitch = kinds * C};
  record_column_sum(l, r, c, partial, *o.dweight, 0);
  if (!centered) return true;
  view second = partial;
  second.at += std::uint64_t(4 * C);
  second.bytes = std::max<std::int64_t>(0, partial.bytes - 4 * C);
  record_column_sum(l, r, c, second, *o.dbias, 0);
  return true;
}

}  // namespace isotope::vulkan::portable
