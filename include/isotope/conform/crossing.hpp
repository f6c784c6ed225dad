#pragma once
/// Generators of whole cases, applied to every op whose signature they handle. Specifications do not name them, so that one more line in the table
/// reaches every op. Each case records the name of its generator.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "traced_case.hpp"

namespace isotope::conform {

/// What a generator may ask about an op: the number, kinds, ranges and shapes of its operands, by the example of a case of its specification.
class signature {
 public:
  signature(const spec& of, const case_sink& s)
      : of_(of), place_(s.first_plain()), form_(s.largest_plain()), gradient_(s.form_has_gradient()), program_(s.program()) {}

  const spec& of() const { return of_; }
  /// Returns false if no case of the op has ordinary numbers; no generator applies to such an op.
  bool has_form() const { return form_.of != nullptr; }
  /// Whether some case can hold the specification's boundary values.
  bool has_place() const { return place_.of != nullptr; }
  /// Returns its largest case of at most 2048 ordinary numbers, preferably with at least two axes.
  const test_case& form() const { return form_; }
  bool has_gradient() const { return gradient_; }
  bool elementwise() const { return of_.op->kind == op_kind::elementwise; }
  /// Whether results are sums or functions: rounded, and compared within bounds.
  bool rounds() const {
    return std::any_of(of_.outputs.begin(), of_.outputs.end(), [](const result_role& r) { return r.by == comparison::scaled; });
  }
  /// Whether results come from several operations that round one after another.
  bool accumulates() const { return rounds() && of_.op->kind == op_kind::kernel; }
  /// Whether the op's shape rule accepts the operands of a case.
  bool takes(const test_case& c) const { return case_tracer::trace_of(c, program_, {}).g.error.empty(); }
  /// Whether some operand satisfies p.
  template <class P> bool any(P&& p) const { return has_form() && std::any_of(form_.in.begin(), form_.in.end(), p); }

 private:
  const spec& of_;
  test_case place_, form_;
  bool gradient_;
  dtype program_;
};

/// A generator by its name. `since`: the weakest strength whose runs have its cases.
struct case_generator {
  std::string_view name;
  strength since = strength::standard;
  bool (*handles)(const signature&) = nullptr;
  void (*make)(const signature&, case_sink&) = nullptr;
};

namespace crossing_detail {

/// Whether the numbers may be replaced by others of their range.
inline bool is_ordinary(const operand_recipe& x) { return is_floating(x.type) && (x.from->name == "uniform" || x.from->name == "normal"); }
inline bool has_both_signs(const operand_recipe& x) { return is_ordinary(x) && x.low < 0 && x.high > 0; }
inline bool has_zero(const operand_recipe& x) { return is_ordinary(x) && x.low <= 0 && x.high >= 0; }
inline bool has_whole_numbers(const operand_recipe& x) { return is_ordinary(x) && std::floor(x.high) - std::ceil(x.low) >= 2; }
inline bool is_matrix(const operand_recipe& x) { return x.dims.rank >= 2; }
inline bool is_cube(const operand_recipe& x) { return x.dims.rank >= 3; }

/// Returns the form with every operand that satisfies `which` changed.
template <class P, class F> test_case changed(const signature& s, P&& which, F&& change) {
  test_case c = s.form();
  for (operand_recipe& x : c.in)
    if (which(x)) change(x);
  return c;
}
inline void fill_with(operand_recipe& x, const generator& g, double low, double high) { x.from = &g, x.low = low, x.high = high; }

/// Returns the form of an element-wise op with all operands in one shape.
inline void put_flat(const signature& s, case_sink& to, const shape& dims, bool gradient) {
  to.put(changed(s, [](const auto&) { return true; }, [&](operand_recipe& x) { x.dims = dims; }), gradient && s.has_gradient());
}
/// Returns the form with so many rows of the first operand, and of those with as many rows if the shape rule requires it; without an op if it accepts
/// no other number of rows.
inline test_case with_rows(const signature& s, std::int64_t rows) {
  if (!s.has_form() || s.elementwise() || s.form().in[0].dims.rank < 2) return {};
  const std::int64_t were = s.form().in[0].dims[0];
  const auto resize = [&](operand_recipe& x) { x.dims.set(0, rows); };
  test_case all = changed(
      s, [&](const operand_recipe& x) { return x.dims.rank >= 1 && x.dims[0] == were && (x.dims.rank >= 2 || !is_floating(x.type)); },
      resize);
  test_case one = s.form();
  resize(one.in[0]);
  for (test_case* c : {&all, &one})
    if (s.takes(*c)) return std::move(*c);
  return {};
}
template <std::int64_t Rows> bool has_rows(const signature& s) { return with_rows(s, Rows).of != nullptr; }
template <std::int64_t Rows> void put_rows(const signature& s, case_sink& to) { to.put(with_rows(s, Rows)); }
/// Puts axes into another memory order, for the gradient, too.
template <class F> void put_ordered(const signature& s, case_sink& to, F&& axis) {
  to.put(changed(s, is_matrix,
                 [&](operand_recipe& x) {
                   for (int k = 0; k < x.dims.rank; ++k) x.order[std::size_t(k)] = std::int8_t(axis(k, x.dims.rank));
                 }),
         s.has_gradient());
}

}  // namespace crossing_detail

/// The table of generators. One more line makes cases of every op that it handles, in runs of its strength.
inline constexpr auto every_case_generator = [] {
  using namespace crossing_detail;
  using sig = const signature&;
  constexpr auto standard = strength::standard;
  return std::array{
      case_generator{"boundary values", strength::fast,
                     [](sig s) {
                       const auto& v = s.of().boundary;
                       return s.has_place() &&
                              (s.elementwise() || std::any_of(v.begin(), v.end(), [](double x) { return std::isfinite(x); }));
                     },
                     [](sig s, case_sink& to) { to.add_boundaries(s.of().boundary, s.elementwise()); }},
      // values
      case_generator{"subnormal numbers", standard, [](sig s) { return !s.accumulates() && s.any(has_both_signs); },
                     [](sig s, case_sink& to) {
                       to.put(changed(s, has_both_signs, [](auto& x) { fill_with(x, generator_of<generators::subnormals>, 0, 0); }));
                     }},
      // bounds of many roundings are relative ones, so ordinary numbers surround the value
      case_generator{"subnormal terms", standard, [](sig s) { return s.accumulates() && s.any(has_both_signs); },
                     [](sig s, case_sink& to) {
                       to.put(changed(s, has_both_signs, [](auto& x) { x.from = &generator_of<generators::some_subnormals>; }));
                     }},
      case_generator{"numbers of all magnitudes", standard, [](sig s) { return s.rounds() && s.any(has_both_signs); },
                     [](sig s, case_sink& to) {
                       to.put(changed(s, has_both_signs, [](auto& x) {
                         fill_with(x, generator_of<generators::exponents>, -16, std::log2(std::fmin(-x.low, x.high)));
                       }));
                     }},
      case_generator{"cancelling terms", standard,
                     [](sig s) {
                       return s.rounds() && !s.elementwise() && s.has_form() && has_both_signs(s.form().in[0]) && s.form().in[0].high >= 1;
                     },
                     [](sig s, case_sink& to) {
                       test_case c = s.form();
                       fill_with(c.in[0], generator_of<generators::cancelling>, 0, 0);
                       c.ill_conditioned = true;
                       to.put(std::move(c));
                     }},
      case_generator{"whole numbers", standard, [](sig s) { return s.any(has_whole_numbers); },
                     [](sig s, case_sink& to) {
                       to.put(changed(s, has_whole_numbers, [](auto& x) {
                         fill_with(x, generator_of<generators::whole>, std::ceil(x.low), std::floor(x.high) + 1);
                       }));
                     }},
      case_generator{"equal numbers", standard, [](sig s) { return s.any(is_ordinary); },
                     [](sig s, case_sink& to) {
                       to.put(changed(s, is_ordinary, [](auto& x) {
                         const double v = x.from->name == "normal" ? x.low : x.low + 0.625 * (x.high - x.low);
                         fill_with(x, generator_of<generators::constant>, v, v);
                       }));
                     }},
      case_generator{"zeros of both signs", standard, [](sig s) { return s.any(has_zero); },
                     [](sig s, case_sink& to) {
                       to.put(changed(s, has_zero, [](auto& x) { fill_with(x, generator_of<generators::signed_zeros>, 0, 0); }));
                     }},
      // layouts
      case_generator{"reversed axes", standard, [](sig s) { return s.any(is_matrix); },
                     [](sig s, case_sink& to) { put_ordered(s, to, [](int k, int rank) { return rank - 1 - k; }); }},
      case_generator{"rotated axes", standard, [](sig s) { return s.any(is_cube); },
                     [](sig s, case_sink& to) { put_ordered(s, to, [](int k, int rank) { return (k + 1) % rank; }); }},
      // sizes
      case_generator{"no elements", standard, [](sig s) { return s.has_form() && s.elementwise(); },
                     [](sig s, case_sink& to) { put_flat(s, to, {0}, false); }},
      case_generator{"one element", standard, [](sig s) { return s.has_form() && s.elementwise(); },
                     [](sig s, case_sink& to) { put_flat(s, to, {1}, true); }},
      case_generator{"many elements", standard, [](sig s) { return s.has_form() && s.elementwise(); },
                     [](sig s, case_sink& to) { put_flat(s, to, {65537}, false); }},
      case_generator{"no rows", standard, has_rows<0>, put_rows<0>},
      case_generator{"one row", standard, has_rows<1>, put_rows<1>},
      case_generator{"many rows", standard, has_rows<67>, put_rows<67>},
      case_generator{"broadcast operands", standard, [](sig s) { return s.has_form() && s.elementwise() && s.form().in.size() >= 2; },
                     [](sig s, case_sink& to) {
                       test_case c = s.form();
                       for (std::size_t k = 0; k < c.in.size(); ++k)
                         c.in[k].dims = k % 3 == 0 ? shape{7, 1} : k % 3 == 1 ? shape{1, 5} : shape{3, 7, 5};
                       to.put(std::move(c), s.has_gradient());
                     }},
  };
}();

/// Lets the generators that runs of `since` add make their cases of an op whose own cases are in the sink.
inline void cross(std::span<const case_generator> all, strength since, const spec& of, case_sink& to) {
  const signature s(of, to);
  for (const case_generator& g : all)
    if (g.since == since && g.since <= to.how() && g.handles(s)) {
      to.name_generator(g.name);
      g.make(s, to);
    }
  to.name_generator({});
}

/// Returns the name as the table holds it; empty if there is no such generator.
inline std::string_view case_generator_named(std::string_view name) {
  for (const case_generator& g : every_case_generator)
    if (g.name == name) return g.name;
  return {};
}

}  // namespace isotope::conform
