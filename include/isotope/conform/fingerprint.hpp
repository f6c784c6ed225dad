#pragma once
/// Observes a device's arithmetic and condenses it into sixteen digits: both change with its driver, its arithmetic and its kernels.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "batch.hpp"
#include "numbers.hpp"
#include "registry.hpp"

namespace isotope::conform {

struct fingerprint {
  std::string digits;
  /// Returns how it rounds, how it treats subnormal numbers, and for each elementary function the largest distance from its reference, in units in
  /// the last place of the program's format; for a gpu also its subgroups and the f32 modes that kernels could request.
  std::map<std::string, std::string> arithmetic;
};

class fingerprint_taker {
 public:
  explicit fingerprint_taker(executor& on) : on_(on), f_(on.facts()) {}

  /// Runs every element-wise op of one operand over awkward numbers, which different implementations of exp, log or tanh round differently, and sums
  /// and matmuls that show how a device rounds. @error as executor::load
  result<fingerprint> take() {
    for (const spec& s : every_spec())
      if (s.op->kind == op_kind::elementwise && s.inputs.size() == 1) add_function(s);
    const double u = facts_of(f_.program).roundoff(), small = facts_of(f_.program).least_normal();
    sums_ = add_probe("add", {1, 1 + 2 * u, -1, 1, 1, -1}, {u, u, -u, u * (1 + 2 * u), -u / 2, -u * (1 + 2 * u)});
    products_ = add_probe("mul", {small, -small}, {0.5, 0.5});
    if (auto r = run(); !r) return r.error();
    fingerprint p;
    p.digits = digits();
    if (sums_ >= 0) p.arithmetic["rounding"] = rounding(u);
    if (products_ >= 0) p.arithmetic["subnormal numbers"] = results_[std::size_t(products_)][0] == small / 2 ? "kept" : "taken for zero";
    for (std::size_t k = 0; k < cases_.size(); ++k)
      if (cases_[k].of->policy.elementary()) p.arithmetic["ulps of " + std::string(cases_[k].of->name)] = farthest(k);
    for (const auto& fact : on_.device().facts)
      if (fact.name == "subgroups" || fact.name == "f32 modes") p.arithmetic[fact.name] = fact.value;
    return p;
  }

 private:
  executor& on_;
  target_facts f_;
  std::vector<test_case> cases_;
  std::vector<array> results_;
  std::ptrdiff_t sums_ = -1, products_ = -1;  // indices of cases; -1: the registry has no such op
  std::string bytes_;

  void add_function(const spec& s) {
    test_case c;
    c.of = &s;
    c.seed = 1;
    c.attr = attributes::of_scalar(0.1);
    c.in = {{{1024}, f_.program, &generator_of<generators::exponents>, -6, 4, row_major}};
    cases_.push_back(c);
  }
  std::ptrdiff_t add_probe(std::string_view op, std::vector<double> a, std::vector<double> b) {
    test_case c;
    c.of = find_spec(op);
    if (c.of == nullptr) return -1;
    auto numbers = std::make_shared<std::vector<array>>();
    for (auto* x : {&a, &b}) {
      array one(shape{std::int64_t(x->size())}, f_.program);
      one.at = *x;
      c.in.push_back({one.dims, f_.program, &generator_of<generators::uniform>, 0, 0, row_major});
      numbers->push_back(std::move(one));
    }
    c.given = std::move(numbers);
    cases_.push_back(c);
    return std::ptrdiff_t(cases_.size()) - 1;
  }
  result<void> run() {
    std::vector<traced_case> traced;
    for (const test_case& c : cases_) traced.push_back(case_tracer::trace_of(c, f_.program, f_.kernels));
    auto plan = batch_planner(f_, {}).plan(traced);
    if (!plan) return plan.error();
    auto loaded = on_.load(std::move(plan->plan), false);
    if (!loaded) return loaded.error();
    for (std::size_t k = 0; k < cases_.size(); ++k)
      for (std::size_t i = 0; i < cases_[k].in.size(); ++i)
        write_numbers(operand_numbers(cases_[k], i), row_major, (*loaded)->inputs().data() + plan->cases[k].in[i].at);
    if (auto r = (*loaded)->run({}); !r) return r.error();
    const auto bytes = (*loaded)->outputs();
    for (const placed_case& p : plan->cases) {
      results_.push_back(read_numbers(p.out[0], bytes.data()));
      bytes_.append(reinterpret_cast<const char*>(bytes.data()) + p.out[0].at, std::size_t(p.out[0].bytes));
    }
    return {};
  }
  std::string digits() const {
    stable_hash h;
    const device_info d = on_.device();
    h.add(d.name).add(d.driver).add(f_.set);
    for (const auto& fact : d.facts) h.add(fact.name).add(fact.value);
    h.add(bytes_);
    return std::string(hex_text(h.value()).view());
  }
  /// Uses sums that are exactly, slightly above and slightly below half a unit beyond a number.
  std::string rounding(double u) const {
    const array& y = results_[std::size_t(sums_)];
    const auto are = [&](const std::vector<double>& expected) { return y.at == expected; };
    const double up = 1 + 2 * u;
    if (are({1, 1 + 4 * u, -1, up, 1, -up})) return "to nearest, ties to even";
    if (are({1, up, -1, 1, 1 - u, -1})) return "toward zero";
    return "neither to nearest even nor toward zero";
  }
  /// Returns the largest distance of function k from its reference where that is a normal number, with one decimal.
  std::string farthest(std::size_t k) const {
    const test_case& c = cases_[k];
    const array x = operand_numbers(c, 0);
    std::vector<answer> e(1);
    c.of->reference({{&x, 1}, c.attr, c.scalars, f_.on(c.of->policy)}, e);
    double worst = 0;
    for (std::size_t i = 0; i < x.at.size(); ++i) {
      const double v = e[0].value[i], off = std::fabs(results_[k].at[i] - v) / ulp(f_.program, v);
      if (std::fabs(v) >= facts_of(f_.program).least_normal() && std::isfinite(off)) worst = std::fmax(worst, off);
    }
    const auto tenths = std::llround(worst * 10);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
  }
};

/// @error as executor::load
inline result<fingerprint> fingerprint_of(executor& on) { return fingerprint_taker(on).take(); }

}  // namespace isotope::conform
