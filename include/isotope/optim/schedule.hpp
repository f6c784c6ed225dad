#pragma once
/// Learning-rate schedules: structural values, and `rate(schedule, t)` for each. t counts finished updates, from 0: the first update
/// uses rate(schedule, 0). All arithmetic is f64 and none of it calls libm, so the compiler and every machine compute the same bits.
#include <concepts>
#include <cstdint>

namespace isotope::optim {

/// A schedule maps a step count to a learning rate; steps outside its range continue its first or last value.
template <class S>
concept Schedule = requires(const S& s, std::int64_t t) {
  { rate(s, t) } -> std::convertible_to<double>;
};

namespace detail {

inline constexpr double pi = 3.14159265358979323846;

/// cos(x) for x in [0, pi], with absolute error below 1e-15: folds x to [0, pi/2], then sums the Taylor series in x^2.
/// The first omitted term is at most (pi/2)^22 / 22! = 1.9e-17.
constexpr double cosine_of(double x) {
  if (x > pi / 2) return -cosine_of(pi - x);
  double term = 1, sum = 1;
  for (int k = 1; k <= 10; ++k) {
    term *= -x * x / double((2 * k - 1) * (2 * k));
    sum += term;
  }
  return sum;
}

/// base^n by squaring, n >= 0.
constexpr double power(double base, std::int64_t n) {
  double product = 1;
  for (; n > 0; n /= 2, base *= base)
    if (n % 2 != 0) product *= base;
  return product;
}

/// t / steps clamped to [0, 1]; 1 if steps is 0.
constexpr double part(std::int64_t t, std::int64_t steps) { return t >= steps ? 1.0 : t <= 0 ? 0.0 : double(t) / double(steps); }

}  // namespace detail

/// rate[t] = value
struct constant {
  double value = 1e-3;
};
constexpr double rate(const constant& s, std::int64_t) { return s.value; }

/// rate[t] = from + (to - from) min(t / steps, 1)
struct linear {
  double from = 1e-3, to = 0;
  std::int64_t steps = 1;
};
constexpr double rate(const linear& s, std::int64_t t) {
  const double p = detail::part(t, s.steps);
  return p >= 1 ? s.to : s.from + (s.to - s.from) * p;
}

/// rate[t] = to + (from - to) (1 + cos(pi min(t / steps, 1))) / 2
/// Source: Loshchilov & Hutter 2017, arXiv:1608.03983, one period without restarts.
struct cosine {
  double from = 1e-3, to = 1e-4;
  std::int64_t steps = 1;
};
constexpr double rate(const cosine& s, std::int64_t t) {
  return s.to + (s.from - s.to) * 0.5 * (1 + detail::cosine_of(detail::pi * detail::part(t, s.steps)));
}

/// rate[t] = from factor^floor(t / every)
struct step_decay {
  double from = 1e-3, factor = 0.1;
  std::int64_t every = 1;
};
constexpr double rate(const step_decay& s, std::int64_t t) {
  return s.from * detail::power(s.factor, t <= 0 || s.every <= 0 ? 0 : t / s.every);
}

/// rate[t] = max(from factor^t, floor)
struct exponential {
  double from = 1e-3, factor = 0.999, floor = 0;
};
constexpr double rate(const exponential& s, std::int64_t t) {
  const double r = s.from * detail::power(s.factor, t < 0 ? 0 : t);
  return r > s.floor ? r : s.floor;
}

/// Warmup, stable, decay: with W = warmup, S = stable, D = decay,
///   rate[t] = peak (t + 1) / (W + 1)              t < W
///             peak                                W <= t < W + S
///             peak + (last - peak) (t-W-S) / D    W + S <= t < W + S + D
///             last                                after
/// Source: Hu et al. 2024, arXiv:2404.06395 (MiniCPM), with the linear decay of Haegele et al. 2024, arXiv:2405.18392.
struct wsd {
  double peak = 1e-3, last = 0;
  std::int64_t warmup = 0, stable = 0, decay = 1;
};
constexpr double rate(const wsd& s, std::int64_t t) {
  if (t < s.warmup) return s.peak * double((t < 0 ? 0 : t) + 1) / double(s.warmup + 1);
  return rate(linear{s.peak, s.last, s.decay}, t - s.warmup - s.stable);
}

/// rate[t] = rate(rest, 0) (t + 1) / (steps + 1)   t < steps
///           rate(rest, t - steps)                 after
/// The first update has a rate above zero, since otherwise it would be wasted, and `rest` starts at its own step 0.
template <Schedule Rest> struct warmup {
  Rest rest{};
  std::int64_t steps = 0;
};
template <Schedule Rest> warmup(Rest, std::int64_t) -> warmup<Rest>;
template <Schedule Rest> constexpr double rate(const warmup<Rest>& s, std::int64_t t) {
  if (t >= s.steps) return rate(s.rest, t - s.steps);
  return rate(s.rest, 0) * double((t < 0 ? 0 : t) + 1) / double(s.steps + 1);
}

/// rate[t] = rate(first, t)          t < until
///           rate(then, t - until)   after
/// Can be nested to combine any number of schedules: composed{a, 100, composed{b, 200, c}}.
template <Schedule First, Schedule Then> struct composed {
  First first{};
  std::int64_t until = 0;
  Then then{};
};
template <Schedule First, Schedule Then> composed(First, std::int64_t, Then) -> composed<First, Then>;
template <Schedule First, Schedule Then> constexpr double rate(const composed<First, Then>& s, std::int64_t t) {
  return t < s.until ? rate(s.first, t) : rate(s.then, t - s.until);
}

static_assert(Schedule<constant> && Schedule<linear> && Schedule<cosine> && Schedule<step_decay> && Schedule<exponential> && Schedule<wsd>);
static_assert(Schedule<warmup<cosine>> && Schedule<composed<constant, warmup<cosine>>>);
static_assert(!Schedule<double>, "a bare number is not a schedule: constant{1e-3} is");

}  // namespace isotope::optim
