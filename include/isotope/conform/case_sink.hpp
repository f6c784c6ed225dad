#pragma once
/// Receives the cases of specifications: numbers and seeds them, and passes them on one by one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "test_case.hpp"

namespace isotope::conform {

enum class strength : std::uint8_t { fast, standard, full };
constexpr std::string_view name_of(strength s) {
  constexpr std::string_view names[] = {"fast", "standard", "full"};
  return names[std::size_t(s)];
}

/// Takes each case as it comes; returns false to stop.
class case_visitor {
 public:
  virtual bool visit(test_case&& c) = 0;

 protected:
  ~case_visitor() = default;
};

class case_sink {
 public:
  case_sink(const spec* of, std::string_view op, std::uint32_t version, dtype program, strength how, int multiple, std::uint64_t run_seed,
            std::uint64_t first_id, case_visitor& to, bool blocks = false)
      : of_(of),
        op_(op),
        version_(version),
        program_(program),
        how_(how),
        multiple_(multiple),
        run_(run_seed),
        next_(first_id),
        to_(to),
        blocks_(blocks) {}

  dtype program() const { return program_; }
  dtype accum() const { return accum_of(program_); }
  strength how() const { return how_; }
  /// Whether the target reads weights in blocks.
  bool blocks() const { return blocks_; }
  /// How often random cases are repeated with other numbers and sizes.
  int repeats() const {
    const int once = how_ == strength::fast ? 2 : how_ == strength::standard ? 12 : 200;
    return multiple_ > std::numeric_limits<int>::max() / once ? std::numeric_limits<int>::max() : multiple_ * once;
  }
  /// Returns an integer in [low, high] for repetition `k`, the same in every run.
  std::int64_t size(int k, std::uint32_t axis, std::int64_t low, std::int64_t high) const {
    const auto x = philox(seed_of(op_, version_, std::uint64_t(k), 0), axis, 0, 0)[0];
    return low + std::int64_t(x % std::uint32_t(high - low + 1));
  }
  /// Returns an operand in the program's format.
  operand_recipe x(const shape& s, double low = -2, double high = 2, const generator* from = &generator_of<generators::uniform>) const {
    return {s, program_, from, low, high, row_major};
  }
  operand_recipe wide(const shape& s, double low = -2, double high = 2, const generator* from = &generator_of<generators::uniform>) const {
    return {s, accum(), from, low, high, row_major};
  }
  /// Returns an operand of i32 numbers.
  static operand_recipe integers(const shape& s, double low, double high, const generator* from) {
    return {s, dtype::i32, from, low, high, row_major};
  }

  /// Puts the case, and if `gradient` its gradient, too.
  void add(std::vector<operand_recipe> in, const attributes& a = {}, bool gradient = false) {
    put({.attr = a, .in = std::move(in)}, gradient);
  }
  void put(test_case c, bool gradient = false) {
    c.of = of_;
    c.made_by = made_by_;
    if (made_by_.empty()) keep_form(c, gradient);
    if (gradient) {
      if (few_numbers(c) && adjoints_.size() < most_adjoints()) adjoints_.push_back(c);
      test_case g = c;
      g.kind = case_kind::gradient;
      send(std::move(c));
      send(std::move(g));
    } else {
      send(std::move(c));
    }
  }
  /// Puts the first small cases with a gradient again for the adjoint law, which is number `law` of the op's; if `bends`, only those with distinct
  /// numbers.
  void add_adjoints(std::int32_t law, bool bends) {
    for (test_case& c : std::exchange(adjoints_, {})) {
      if (bends && c.in[0].from->name != "distinct") continue;
      c.kind = case_kind::law;
      c.law = law;
      send(std::move(c));
    }
  }
  /// Puts cases with the boundary values of a specification, in the form of its first small case with floating-point operands: every pair of values
  /// if the op is element-wise, otherwise one finite value at a time among ordinary numbers.
  void add_boundaries(std::span<const double> values, bool elementwise) {
    if (pattern_.of == nullptr) return;
    if (elementwise) return put(every_pair(pattern_, values));
    for (const double v : values)
      if (std::isfinite(v)) put(amid_numbers(pattern_, v));
  }
  /// Attributes all further cases to this generator, which their records name; empty: to the specification.
  void name_generator(std::string_view name) { made_by_ = name; }
  /// Returns the specification's first case with few ordinary numbers, and the largest such case; without an op if there is none. See crossing.hpp.
  const test_case& first_plain() const { return pattern_; }
  const test_case& largest_plain() const { return form_; }
  bool form_has_gradient() const { return form_has_gradient_; }
  /// Whether the visitor has stopped, or no number is left.
  bool done() const { return done_; }
  std::uint64_t next_id() const { return next_; }

 private:
  const spec* of_;
  std::string_view op_;
  std::uint32_t version_;
  dtype program_;
  strength how_;
  int multiple_;
  std::uint64_t run_, next_, number_ = 0;
  case_visitor& to_;
  bool blocks_, done_ = false;

  std::vector<test_case> adjoints_;
  test_case pattern_;  // for cases with boundary values
  test_case form_;     // for cases that generators make
  bool form_has_gradient_ = false;
  int form_axes_ = -1;  // axes of the form's first operand, at most 2
  std::int64_t form_elems_ = 0;
  std::string_view made_by_;

  static std::int64_t elems_of(const test_case& c) {
    std::int64_t n = 0;
    for (const operand_recipe& x : c.in) n += x.dims.count();
    return n;
  }
  void keep_form(const test_case& c, bool gradient) {
    if (pattern_.of == nullptr && is_plain(c)) pattern_ = c;
    const std::int64_t elems = elems_of(c);
    if (c.in.empty() || elems > 2048) return;
    const int axes = std::min(2, int(c.in[0].dims.rank));
    if (axes > form_axes_ || (axes == form_axes_ && elems > form_elems_)) {
      if (!may_be_form(c)) return;
      form_axes_ = axes;
      form_elems_ = elems;
      form_ = c;
      form_has_gradient_ = gradient;
    }
  }
  /// Whether the operands are not empty and have few numbers, some ordinary and none infinite.
  static bool may_be_form(const test_case& c) {
    bool ordinary = false;
    for (const operand_recipe& x : c.in) {
      if (x.order != row_major || x.dims.count() == 0) return false;
      const bool drawn = x.from->name == "uniform" || x.from->name == "normal";
      if (is_floating(x.type) && !drawn && !(x.from->name == "constant" && std::isfinite(x.low))) return false;
      ordinary = ordinary || (is_floating(x.type) && drawn);
    }
    return ordinary && c.kind == case_kind::forward && !c.ill_conditioned && c.given == nullptr;
  }

  static bool is_plain(const test_case& c) {
    for (const operand_recipe& x : c.in)
      if (x.order != row_major) return false;
    const std::int64_t n = elems_of(c);
    return c.kind == case_kind::forward && n > 0 && n <= 2048 && c.in[0].dims.count() > 0 && !c.ill_conditioned &&
           (c.in[0].from->name == "uniform" || c.in[0].from->name == "normal");
  }
  static test_case every_pair(test_case c, std::span<const double> values) {
    std::int64_t n = 1;
    for (const operand_recipe& x : c.in) n *= is_floating(x.type) ? std::int64_t(values.size()) : 1;
    auto numbers = std::make_shared<std::vector<array>>();
    std::int64_t step = 1;
    for (operand_recipe& x : c.in) {
      x.dims = shape{n};
      array a(x.dims, x.type);
      for (std::int64_t i = 0; i < n; ++i)
        a.at[std::size_t(i)] = is_floating(x.type) ? nearest(x.type, values[std::size_t(i / step) % values.size()]) : double(i % 2);
      if (is_floating(x.type)) step *= std::int64_t(values.size());
      numbers->push_back(std::move(a));
    }
    c.given = std::move(numbers);
    return c;
  }
  test_case amid_numbers(test_case c, double v) const {
    auto numbers = std::make_shared<std::vector<array>>();
    for (std::size_t k = 0; k < c.in.size(); ++k) {
      const operand_recipe& x = c.in[k];
      array a(x.dims, x.type);
      const drawing d{seed_of(op_, version_, number_, run_), x.type, int(k), x.dims.cols(), x.low, x.high};
      stream(*x.from, d, x.dims.count(), [&](std::int64_t i, double y) { a.at[std::size_t(i)] = y; });
      numbers->push_back(std::move(a));
    }
    array& first = numbers->front();
    first.at[first.at.size() / 2] = nearest(first.type, v);
    c.given = std::move(numbers);
    return c;
  }

  std::size_t most_adjoints() const { return how_ == strength::fast ? 6 : how_ == strength::standard ? 16 : 48; }
  /// Differences take eight references, and one wrong number among very many hardly changes them.
  static bool few_numbers(const test_case& c) {
    std::int64_t n = 0;
    for (const operand_recipe& x : c.in) {
      n += x.dims.count();
      if (is_floating(x.type) && x.from->name != "uniform" && x.from->name != "normal" && x.from->name != "distinct") return false;
    }
    return n > 0 && n <= 1024 && !c.ill_conditioned;
  }
  void send(test_case c) {
    done_ = done_ || next_ >= case_id_end;
    if (done_) return;
    c.id = next_++;
    c.seed = seed_of(op_, version_, number_++, run_);
    done_ = !to_.visit(std::move(c));
  }
};

/// Returns x with its axes in another memory order.
inline operand_recipe ordered(operand_recipe x, std::initializer_list<int> order) {
  std::size_t k = 0;
  for (int i : order) x.order[k++] = std::int8_t(i);
  return x;
}

}  // namespace isotope::conform
