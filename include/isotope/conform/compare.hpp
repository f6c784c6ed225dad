#pragma once
/// Comparators. Each is written !(err <= tol), so that NaN never passes.
#include <cmath>
#include <cstdint>
#include <string>

#include "spec.hpp"

namespace isotope::conform {

/// How far a tensor is from the expected one.
struct distance {
  std::int64_t worst = -1;  // the element that exceeds its bound most; -1: none does
  double got = 0, expected = 0, bound = 0;
  double nmse = 0, max_abs = 0, max_rel = 0;
  bool nmse_exceeded = false;
  double nmse_limit = 0;
  bool passes() const { return worst < 0 && !nmse_exceeded; }
};

/// Limits on means are for this many terms; (sum v^2)^2 / sum v^4 is the number of terms if all are alike. For fewer terms n, the mean may reach
/// least_for_mean / n times the limit, so that one term may be off by ten times the root of the limit.
inline constexpr double least_for_mean = 100;

/// Returns how far the elements of a result may be off, including their rounding.
class element_bounds {
 public:
  element_bounds(dtype type, const conditions& on) : type_(type), facts_(facts_of(type)), edge_(facts_.overflow()) {
    // results of 16 bits are first rounded to the accumulation format
    roundoff_ = facts_.roundoff() + (type == on.accum() ? 0 : 2 * on.u());
    // below the normal numbers, each of several roundings is off by half a spacing, whatever the result's size
    least_ = facts_.least() + 3 * facts_of(on.accum()).least() + (on.gpu ? facts_.least_normal() : 0);
  }
  double of(const answer& e, std::size_t i) const {
    const double v = std::fabs(e.value[i]);
    const double rounding = e.roundings * roundoff_ * (std::isfinite(v) ? (v < facts_.largest ? v : facts_.largest) : 0);
    return rounding + e.slack[i] + least_;
  }
  /// Whether element i of y agrees with the reference.
  bool near_enough(double y, const answer& e, std::size_t i, comparison by, double& bound) const {
    const double v = e.value[i];
    bound = 0;
    if (std::isnan(y) || std::isnan(v)) return std::isnan(y) && std::isnan(v);
    if (!is_floating(type_)) return y == v;
    if (by == comparison::exact) return y == nearest(type_, v) && std::signbit(y) == std::signbit(v);
    bound = of(e, i);
    if (std::isinf(v)) return y == v;
    if (std::isinf(bound)) return false;  // an infinite bound would accept any number
    // infinity stands for the least number that rounds to it
    const double a = std::isinf(y) ? std::copysign(edge_, y) : y, b = std::fabs(v) > edge_ ? std::copysign(edge_, v) : v;
    return !(!(std::fabs(a - b) <= bound));
  }

 private:
  dtype type_;
  format_facts facts_;
  double edge_, roundoff_, least_;
};

/// The limit on the mean squared error of a result relative to its mean square, where the specification names none: that of the format's rounding, and
/// a share of what the bounds of the elements allow, since errors of many operations rarely add up. Both are far below what a wrong factor makes: 1e-8
/// of 1.0001 in f32, 4e-4 of 1.02 in bf16. < 0: there is no limit.
inline double mean_square_limit(const answer& e, dtype type, const conditions& on) {
  const double share = type == dtype::bf16 ? 0.2 : 1e-2;  // in bf16 only few operations round to 16 bits
  if (e.nmse != 0) return e.nmse;
  if (e.roundings != 1 && type != on.accum()) return -1;
  const format_facts facts = facts_of(type);
  const double least = facts.least() + (on.gpu ? facts.least_normal() : 0);
  double power = 0, allowed = 0;
  for (std::size_t i = 0; i < e.value.size(); ++i)
    if (std::isfinite(e.value[i]) && std::isfinite(e.slack[i]))
      power += e.value[i] * e.value[i], allowed += share * e.slack[i] * e.slack[i] + least * least;
  const double format = type == dtype::bf16 ? 6e-6 : type == dtype::f32 ? 1e-11 : -1;
  return format < 0 ? -1 : format + (power > 0 ? allowed / power : 0);
}

/// Compares y with the reference. `other`, if not null, is the answer for operands with subnormal numbers flushed to zero: either is accepted.
inline distance compare(const array& y, const answer& e, comparison by, const conditions& on, bool mean_square,
                        const answer* other = nullptr) {
  distance d;
  double error = 0, power = 0, fourth = 0, excess = 0;
  const element_bounds bounds(y.type, on);
  const bool bounded = by == comparison::scaled && is_floating(y.type);
  for (std::size_t i = 0; i < y.at.size(); ++i) {
    // Most numbers equal the reference's and so satisfy any finite bound.
    if (const double v = e.value[i]; bounded && y.at[i] == v && std::isfinite(v) && e.slack[i] < infinity) {
      power += v * v;
      fourth += v * v * (v * v);
      continue;
    }
    double bound = 0;
    bool fine = bounds.near_enough(y.at[i], e, i, by, bound);
    double expected = e.value[i];
    if (!fine && other != nullptr) {
      double again = 0;
      if (bounds.near_enough(y.at[i], *other, i, by, again)) fine = true, expected = other->value[i];
    }
    const double off = std::fabs(y.at[i] - expected);
    if (std::isfinite(expected) && std::isfinite(off)) {
      const double square = expected * expected;
      if (off > 0) {
        if (off > d.max_abs) d.max_abs = off;
        if (expected != 0 && off > d.max_rel * std::fabs(expected)) d.max_rel = off / std::fabs(expected);
      }
      error += off * off;
      power += square;
      fourth += square * square;
    }
    if (fine) continue;
    const double by_how_much = std::isfinite(off) ? off / std::fmax(bound, 1e-300) : infinity;
    if (d.worst >= 0 && !(by_how_much > excess)) continue;
    excess = by_how_much;
    d.worst = std::int64_t(i);
    d.got = y.at[i];
    d.expected = e.value[i];
    d.bound = bound;
  }
  d.nmse = power > 0 ? error / power : 0;
  const bool asked = mean_square && e.nmse > 0 && std::isfinite(fourth) && power > 0 && fourth > 0;
  d.nmse_limit = asked ? e.nmse * std::fmax(1, least_for_mean * fourth / (power * power)) : e.nmse;
  d.nmse_exceeded = asked && !(d.nmse <= d.nmse_limit);
  return d;
}

}  // namespace isotope::conform
