#pragma once
/// Maximum, minimum and argmax.
#include <isotope/op/extremum.hpp>
#include <isotope/shaders/reference_extremum.hpp>

#include "total.hpp"

namespace isotope::vulkan {
namespace reference {

struct extremum {
  enum class which : std::uint32_t { max, min, argmax };

  /// Returns the bytes for the winners of the parts in f32, which holds every 16-bit number, too.
  static constexpr std::int64_t scratch(const step_shapes& s) {
    std::int64_t bytes = 0;
    for (auto terms = op::reduction::length(s.in[0], s.constants<op::extremum>().axes); terms > part_terms;)
      bytes += 4 * s.out[0].count() * (terms = parts_of(terms));
    return bytes;
  }
  static void stage(const launch& l, recording& r, which w, const view& x, const axes_apart& a, std::int64_t parts, const view& y) {
    std::int64_t results = 1, terms = 1;
    for (int k = 0; k < a.rank; ++k) (k < a.outer ? results : terms) *= a.dims[std::size_t(k)];
    if (results == 0) return;
    const struct {
      std::uint64_t x, y;
      std::uint32_t results, terms, parts, outer;
      std::array<std::uint32_t, max_rank> dims, strides;
    } push{x.at, y.at, word(results), word(terms), word(parts), std::uint32_t(a.outer), a.dims, a.strides};
    r.add(shaders::reference_extremum, plain(l).add(x.type).add(y.type).add(std::uint32_t(w)), push, per_item(results * parts), {x}, {y});
  }
  static void record(const launch& l, recording& r, which w) {
    view x = l.in[0];
    std::int64_t mask = l.constants<op::extremum>().axes;
    const auto results = l.out[0].dims.count();
    auto at = l.scratch;
    for (auto terms = op::reduction::length(x.dims, mask); terms > part_terms;) {
      const auto parts = parts_of(terms);
      const shape dims{parts, results};
      const view winners{at, 4 * parts * results, dims, dense_strides(dims), dtype::f32};
      stage(l, r, w, x, axes_apart(x, mask), parts, winners);
      x = winners;
      mask = 1;
      terms = parts;
      at += std::uint64_t(winners.bytes);
    }
    stage(l, r, w, x, axes_apart(x, mask), 1, l.out[0]);
  }
};

}  // namespace reference

template <class P> struct kernel<op::max, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::extremum::scratch(s); }
  static void record(const launch& l, recording& r) { reference::extremum::record(l, r, reference::extremum::which::max); }
};
template <class P> struct kernel<op::min, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::extremum::scratch(s); }
  static void record(const launch& l, recording& r) { reference::extremum::record(l, r, reference::extremum::which::min); }
};
template <class P> struct kernel<op::argmax, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view& x = l.in[0];
    const reference::axes_apart a(x, std::int64_t(1) << l.constants<op::argmax>().axis);
    reference::extremum::stage(l, r, reference::extremum::which::argmax, x, a, 1, l.out[0]);
  }
};

}  // namespace isotope::vulkan
