#pragma once
/// The specification of an op, op_spec<Op>, and what makes it complete. An incomplete one does not compile.
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "../core/op_info.hpp"
#include "call.hpp"
#include "case_sink.hpp"
#include "law.hpp"
#include "numeric_policy.hpp"

namespace isotope::conform {

/// The kind of numbers in an operand or a result.
enum class holds : std::uint8_t {
  floating,     // numbers in the program's format
  accumulated,  // numbers in its accumulation format
  any,          // any format: moves and casts
  integers,     // i32
  truth,        // boolean
};
/// How results are compared with the reference. `scaled`: within the rounding and the slack that the reference gives for each element, be it a
/// condition times roundoff, units in the last place, or a relative and an absolute tolerance. Every op defines the order of its results, so no
/// comparison ignores order.
enum class comparison : std::uint8_t { exact, scaled };
enum class track : std::uint8_t { integer, strict, approximate };
constexpr std::string_view name_of(track t) {
  constexpr std::string_view names[] = {"integer", "strict", "approximate"};
  return names[std::size_t(t)];
}
constexpr std::string_view name_of(comparison c) {
  constexpr std::string_view names[] = {"exact", "scaled"};
  return names[std::size_t(c)];
}

struct operand_role {
  std::string_view name;
  holds what = holds::floating;
  bool differentiable = true;
  bool parameter = false;  // its gradient has accumulation format
  bool optional = false;
};
struct result_role {
  std::string_view name;
  holds what = holds::floating;
  comparison by = comparison::scaled;
};
constexpr bool pairs(holds h, comparison c) { return c == comparison::exact || (h != holds::integers && h != holds::truth); }

/// How an attribute is written in files and printed.
enum class attribute_kind : std::uint8_t {
  integer,
  number,
  flag,
  axis,
  axes,
  extents,
  order,
  format,
  format_or_none,
  scalar,
  number_bits,  // a number whose bits stand in an integer entry
};
constexpr std::string_view name_of(attribute_kind k) {
  constexpr std::string_view names[] = {"integer", "number", "flag",   "axis",   "axes",  "shape",
                                        "order",   "format", "format", "number", "number"};
  return names[std::size_t(k)];
}
struct attribute_field {
  std::string_view name;
  attribute_kind kind = attribute_kind::integer;
  std::uint8_t slot = 0;
  double standard = 0;  // default; an axis of -1 is the last, axes of 0 mean all
  bool required = false;
};

/// The specification of Op, specialised in conform/op/<op>.hpp.
template <class Op> struct op_spec;

template <class S>
concept HasVersion = requires {
  { S::version } -> std::convertible_to<std::uint32_t>;
};
template <class S>
concept HasTrack = requires {
  { S::on } -> std::convertible_to<track>;
};
template <class S>
concept HasInputs = requires { std::span<const operand_role>(S::inputs); };
template <class S>
concept HasOutputs = requires { std::span<const result_role>(S::outputs); } && S::outputs.size() > 0;
template <class S>
concept HasAttributes = requires { std::span<const attribute_field>(S::fields); };
template <class S>
concept HasBoundary = requires { std::span<const double>(S::boundary); } && (S::boundary.size() >= 4);
template <class S>
concept HasLaws = requires { std::span<const law>(S::laws); };
template <class S>
concept HasLeastCases = requires {
  { S::least_cases } -> std::convertible_to<std::int64_t>;
} && (S::least_cases > 0);
template <class S>
concept HasPolicy = requires {
  { S::policy } -> std::convertible_to<numeric_policy>;
};
template <class S>
concept HasReference = requires(const call& c, std::span<answer> y) { S::reference(c, y); };
template <class S>
concept HasGradientReference = requires(const call& c, std::span<const array> dy, std::span<answer> dx) { S::gradient(c, dy, dx); };
template <class S>
concept HasCases = requires(case_sink& s) { S::cases(s); };

template <class S> constexpr bool comparisons_fit() {
  for (const result_role& r : S::outputs)
    if (!pairs(r.what, r.by)) return false;
  return true;
}

/// The reference rounds to a format, so differences of it are meaningless.
template <class S>
concept Steps = requires { requires S::steps; };
/// The derivative jumps where operands tie, so differences are only taken between distinct numbers.
template <class S>
concept Bends = requires { requires S::bends; };

/// Only plans for several devices have the op, so that a backend without such plans need not have a kernel.
template <class S>
concept ForMeshes = requires { requires S::for_meshes; };

/// The laws of S, followed, if its gradient has a reference, by the adjoint law <dx, u> = <dy, J u>.
template <class S> constexpr auto laws_of() {
  constexpr std::size_t n = S::laws.size(), more = HasGradientReference<S> && !Steps<S> ? 1 : 0;
  std::array<law, n + more> all{};
  for (std::size_t k = 0; k < n; ++k) all[k] = S::laws[k];
  if (more != 0) all[n] = {.name = "adjoint"};
  return all;
}
template <class S> inline constexpr auto every_law = laws_of<S>();

/// A specification for run-time code.
struct spec {
  std::string_view name;
  const op_info* op = nullptr;
  const op_rules* rules = nullptr;  // of op
  std::uint32_t version = 0;
  track on = track::approximate;
  std::span<const operand_role> inputs;
  std::span<const result_role> outputs;
  std::span<const attribute_field> fields;
  std::span<const double> boundary;  // numbers at which a kernel may change its code path: they give rise to cases, see case_sink
  std::span<const law> laws;
  std::int64_t least_cases = 0;
  numeric_policy policy;
  reference_function reference = nullptr;
  gradient_function gradient = nullptr;
  void (*cases)(case_sink&) = nullptr;
  void (*complete)(attributes&, std::size_t operands) = nullptr;  // fills attributes that follow from others
  bool bends = false, for_meshes = false;

  /// Returns the position of the adjoint law; -1: none.
  std::int32_t adjoint() const { return !laws.empty() && laws.back().build == nullptr ? std::int32_t(laws.size()) - 1 : -1; }
};

/// The specification of Op, checked part by part.
template <class Op> constexpr spec spec_of() {
  using S = op_spec<Op>;
  static_assert(HasVersion<S>, "op_spec<Op>: no version; add `static constexpr std::uint32_t version = 1`");
  static_assert(HasTrack<S>, "op_spec<Op>: no track; add `static constexpr track on`");
  static_assert(HasInputs<S>, "op_spec<Op>: no inputs; add a std::array of operand_role");
  static_assert(HasOutputs<S>, "op_spec<Op>: no outputs; add a std::array of result_role");
  static_assert(HasAttributes<S>, "op_spec<Op>: no fields; add a std::array of attribute_field, empty if there are none");
  static_assert(HasBoundary<S>, "op_spec<Op>: fewer than 4 boundary values");
  static_assert(HasLaws<S>, "op_spec<Op>: no laws; add a std::array of law, empty if there are none");
  static_assert(HasLeastCases<S>,
                "op_spec<Op>: no number of cases below which nothing is said of the op; add `static constexpr std::int64_t least_cases`");
  static_assert(HasPolicy<S>, "op_spec<Op>: no numeric_policy");
  static_assert(HasReference<S>, "op_spec<Op>: no reference; add `static void reference(const call&, std::span<answer>)`");
  static_assert(HasCases<S>, "op_spec<Op>: no cases; add `static void cases(case_sink&)`");
  static_assert(!HasGradientRule<Op> || HasGradientReference<S>,
                "op_spec<Op>: the op has a gradient and the specification none; add `static void gradient(const call&, dy, dx)`");
  static_assert(comparisons_fit<S>(), "op_spec<Op>: integers and truth values are compared exactly");
  spec r{Op::name,     &info<Op>,      &isotope::rules<Op>, S::version,    S::on,   S::inputs, S::outputs, S::fields, S::boundary,
         every_law<S>, S::least_cases, S::policy,           &S::reference, nullptr, &S::cases, nullptr,    Bends<S>,  ForMeshes<S>};
  if constexpr (HasGradientReference<S>) r.gradient = &S::gradient;
  if constexpr (requires(attributes& a) { S::complete(a, std::size_t(1)); }) r.complete = &S::complete;
  return r;
}

/// Whether the case asks for gradients: of the gradient's reference, or of the adjoint law.
inline bool is_adjoint(const test_case& c) { return c.kind == case_kind::law && c.law == c.of->adjoint(); }
inline bool differentiates(const test_case& c) { return c.kind == case_kind::gradient || is_adjoint(c); }

/// What most specifications have in common.
struct spec_basis {
  static constexpr std::uint32_t version = 1;
  static constexpr track on = track::approximate;
  static constexpr std::array<attribute_field, 0> fields{};
  static constexpr std::array<law, 0> laws{};
  static constexpr std::int64_t least_cases = 10;
  static constexpr numeric_policy policy{};
  static constexpr std::array boundary{0.0, 1.0, -1.0, infinity, nan};
};

}  // namespace isotope::conform
