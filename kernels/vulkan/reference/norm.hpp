#pragma once
/// What layer_norm and rms_norm share.
#include <isotope/shaders/reference_norm.hpp>
#include <isotope/shaders/reference_norm_grad.hpp>
#include <isotope/shaders/reference_norm_weight_grad.hpp>

#include "total.hpp"

namespace isotope::vulkan::reference {

/// `bias` and `means` are set if a mean is subtracted, otherwise null.
struct norm_operands {
  const view &x, &weight;
  const view* bias = nullptr;
  const view& y;
  const view* means = nullptr;
  const view& rstds;
  double epsilon;
};
inline void norm(const launch& l, recording& r, const norm_operands& o) {
  const auto rows = o.rstds.dims.count(), C = o.x.dims[-1];
  if (rows == 0) return;
  const bool centered = o.bias != nullptr;
  const struct {
    std::uint64_t x, weight, bias, y, means, rstds;
    std::uint32_t rows, C;
    float epsilon;
  } push{o.x.at,     o.weight.at, centered ? o.bias->at : 0, o.y.at, centered ? o.means->at : 0, o.rstds.at,
         word(rows), word(C),     float(o.epsilon)};
  auto c = plain(l);
  c.add(o.x.type).add(o.weight.type).add(centered ? o.bias->type : dtype::f32).add(o.y.type).add(centered);
  std::vector<range> reads{o.x, o.weight}, writes{o.y, o.rstds};
  if (centered) reads.push_back(*o.bias), writes.push_back(*o.means);
  r.add(shaders::reference_norm, c, push, per_item(rows), reads, writes);
}

struct norm_grad_operands {
  const view &x, &weight;
  const view* means = nullptr;
  const view &rstds, &dy, &dx, &dweight;
  const view* dbias = nullptr;
};
/// Returns the bytes of the pairs of one column sum, then of the other.
constexpr std::int64_t norm_grad_bytes(std::int64_t rows, std::int64_t C, int sums) { return sums * pair_bytes(C, parts_of(rows)); }

inline void norm_grad(const launch& l, recording& r, const norm_grad_operands& o) {
  const auto rows = o.rstds.dims.count(), C = o.x.dims[-1];
  if (C == 0) return;
  const bool centered = o.means != nullptr;
  struct normalised {
    std::uint64_t x, dy, means, rstds;
    std::uint32_t rows, C;
  };
  const normalised given{o.x.at, o.dy.at, centered ? o.means->at : 0, o.rstds.at, word(rows), word(C)};
  std::vector<range> reads{o.x, o.dy, o.rstds};
  if (centered) reads.push_back(*o.means);

  // The sums over rows come first, because dx may overwrite what they read.
  const auto parts = parts_of(rows);
  const std::uint64_t weights = l.scratch, biases = l.scratch + std::uint64_t(pair_bytes(C, parts));
  const struct {
    normalised given;
    std::uint64_t weights, biases;
    std::uint32_t parts;
  } sums{given, weights, biases, word(parts)};
  std::vector<range> writes{range(weights, 8 * parts * C)};
  if (centered) writes.push_back(range(biases, 8 * parts * C));
  r.add(shaders::reference_norm_weight_grad, plain(l).add(o.x.type).add(o.dy.type).add(centered), sums, per_item(parts * C), reads, writes);
  total_of_pairs(l, r, weights, C, parts, {o.dweight});
  if (centered) total_of_pairs(l, r, biases, C, parts, {*o.dbias});

  if (rows == 0) return;
  const struct {
    normalised given;
    std::uint64_t weight, dx;
  } push{given, o.weight.at, o.dx.at};
  reads.push_back(o.weight);
  auto c = plain(l);
  c.add(o.x.type).add(o.dy.type).add(centered).add(o.weight.type).add(o.dx.type);
  r.add(shaders::reference_norm_grad, c, push, per_item(rows), reads, {o.dx});
}

}  // namespace isotope::vulkan::reference
