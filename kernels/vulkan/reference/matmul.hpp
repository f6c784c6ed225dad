#pragma once
/// Matrix product by the definition, with a fused epilogue.
#include <isotope/kernels/vulkan/body/body.hpp>
#include <isotope/op/matmul.hpp>
#include <isotope/shaders/reference_matmul.hpp>

#include "items.hpp"

namespace isotope::vulkan {
namespace reference {

/// Returns the strides of v along `rank` axes, aligned at the last one: 0 along axes that broadcast.
inline extents repeated(const view& v, int rank) {
  extents r{};
  for (int k = 0; k < v.dims.rank; ++k)
    if (v.dims[k] != 1) r[std::size_t(k + rank - v.dims.rank)] = v.strides[std::size_t(k)];
  return r;
}

}  // namespace reference

template <class P> struct kernel<op::matmul, P, kernels::reference> {
  static constexpr bool epilogue = true;
  static constexpr std::int64_t chain(std::int64_t K) { return K; }  // longest serial sum
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &a = l.in[0], &b = l.in[1], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const int rank = y.dims.rank;
    extents a_rows = reference::repeated(a, rank), b_cols = reference::repeated(b, rank);  // (..., M, 0), (..., 0, N)
    a_rows[std::size_t(rank - 1)] = b_cols[std::size_t(rank - 2)] = 0;
    const auto k = l.constants<op::matmul>();
    const double beta = k.beta;
    const view* c = k.operands == 3 && beta != 0 ? &l.in[2] : nullptr;

    const fused_body body(l, int(k.operands));
    std::vector<std::uint32_t> words;
    const auto add = [&](const std::array<std::uint32_t, max_rank>& six) { words.insert(words.end(), six.begin(), six.end()); };
    add(reference::axes(y).dims);
    add(reference::axes(y.dims, a_rows).strides);
    add(reference::axes(y.dims, b_cols).strides);
    add(c != nullptr ? reference::axes(*c).strides : std::array<std::uint32_t, max_rank>{});

    const struct {
      std::uint64_t a, b, c, y, shape, body;
      std::uint32_t count, K, a_step, b_step;
      float alpha, beta;
    } push{a.at,
           b.at,
           c != nullptr ? c->at : 0,
           y.at,
           r.keep(std::span<const std::uint32_t>(words)),
           body.table(r),
           word(n),
           word(a.dims[-1]),
           word(a.strides[std::size_t(a.dims.rank - 1)]),
           word(b.strides[std::size_t(b.dims.rank - 2)]),
           float(k.alpha),
           float(beta)};
    const bool more = (l.accumulate & 1) != 0;
    auto s = reference::plain(l);
    s.add(a.type).add(b.type).add(c != nullptr ? c->type : dtype::f32).add(y.type).add(k.format.type()).add(c != nullptr).add(more);
    body.add_to(s, false);
    std::vector<range> reads{a, b}, writes;
    if (c != nullptr) reads.push_back(*c);
    if (body.empty()) {
      writes.push_back(y);
      if (more) reads.push_back(y);
    } else {
      body.add_ranges(reads, writes);
    }
    r.add(shaders::reference_matmul, s, push, reference::per_item(n), reads, writes);
  }
};

}  // namespace isotope::vulkan
