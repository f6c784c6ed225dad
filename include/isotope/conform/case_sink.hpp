#pragma once
/// Where specifications put their cases: numbered, seeded, passed on one by one.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "test_case.hpp"

namespace isotope::conform {

enum class strength : std::uint8_t { fast, standard, full };
constexpr std::string_view name_of(strength s) {
  constexpr std::string_view names[] = {"fast", "standard", "full"};
  return names[std::size_t(s)];
}

/// Takes each case as it comes; false: no more.
class case_visitor {
 public:
  virtual bool visit(test_case&& c) = 0;

 protected:
  ~case_visitor() = default;
};

class case_sink {
 public:
  case_sink(const spec* of, std::string_view op, std::uint32_t version, dtype program, strength how, int multiple, std::uint64_t run_seed,
            std::uint64_t first_id, case_visitor& to)
      : of_(of), op_(op), version_(version), program_(program), how_(how), multiple_(multiple), run_(run_seed), next_(first_id), to_(to) {}

  dtype program() const { return program_; }
  dtype accum() const { return accum_of(program_); }
  strength how() const { return how_; }
  /// How often random cases repeat with other numbers and sizes.
  int repeats() const { return multiple_ * (how_ == strength::fast ? 2 : how_ == strength::standard ? 12 : 200); }
  /// A whole number in [low, high] for repetition `k`, the same in every run.
  std::int64_t size(int k, std::uint32_t axis, std::int64_t low, std::int64_t high) const {
    const auto x = philox(seed_of(op_, version_, std::uint64_t(k), 0), axis, 0, 0)[0];
    return low + std::int64_t(x % std::uint32_t(high - low + 1));
  }
  /// An operand in the program's format.
  operand_recipe x(const shape& s, double low = -2, double high = 2, const generator* from = &generator_of<generators::uniform>) const {
    return {s, program_, from, low, high, row_major};
  }
  operand_recipe wide(const shape& s, double low = -2, double high = 2, const generator* from = &generator_of<generators::uniform>) const {
    return {s, accum(), from, low, high, row_major};
  }

  /// The case, and its gradient where `gradient`.
  void add(std::vector<operand_recipe> in, const attributes& a = {}, bool gradient = false) {
    put({.attr = a, .in = std::move(in)}, gradient);
  }
  void put(test_case c, bool gradient = false) {
    c.of = of_;
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
  /// The first small cases with a gradient once more, for the adjoint law, which is number `law` of the op's; `bends`: those of distinct numbers.
  void add_adjoints(std::int32_t law, bool bends) {
    for (test_case& c : std::exchange(adjoints_, {})) {
      if (bends && c.in[0].from->name != "distinct") continue;
      c.kind = case_kind::law;
      c.law = law;
      send(std::move(c));
    }
  }
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
  bool done_ = false;

  std::vector<test_case> adjoints_;

  std::size_t most_adjoints() const { return how_ == strength::fast ? 6 : how_ == strength::standard ? 16 : 48; }
  /// Differences take eight references, and say little of one wrong number among very many.
  static bool few_numbers(const test_case& c) {
    std::int64_t n = 0;
    for (const operand_recipe& x : c.in) {
      n += x.dims.count();
      if (is_floating(x.type) && x.from->name != "uniform" && x.from->name != "normal" && x.from->name != "distinct") return false;
    }
    return n > 0 && n <= 1024 && !c.ill_conditioned;
  }
  void send(test_case c) {
    if (done_) return;
    c.id = next_++;
    c.seed = seed_of(op_, version_, number_++, run_);
    done_ = !to_.visit(std::move(c));
  }
};

/// x with its axes in another memory order.
inline operand_recipe ordered(operand_recipe x, std::initializer_list<int> order) {
  std::size_t k = 0;
  for (int i : order) x.order[k++] = std::int8_t(i);
  return x;
}

}  // namespace isotope::conform
