#pragma once
/// Shrinks a failing case: first shapes, then numbers. It is deterministic, bounded and monotone: every step keeps the failure and makes the case
/// smaller.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "numbers.hpp"

namespace isotope::conform {

inline constexpr int most_shrinking_runs = 200;

template <class StillFails> class shrinker {
 public:
  /// still_fails(case): whether it runs and fails; a case whose operands the op refuses does not count.
  explicit shrinker(StillFails f, int runs = most_shrinking_runs) : still_fails_(std::move(f)), left_(runs) {}

  test_case shrink(test_case c) {
    while (shrink_shapes(c)) {}
    shrink_numbers(c);
    return c;
  }
  int runs() const { return runs_; }

 private:
  StillFails still_fails_;
  int left_, runs_ = 0;

  bool fails(const test_case& c) {
    if (left_ <= 0) return false;
    --left_, ++runs_;
    return still_fails_(c);
  }
  /// Returns c with every axis of size `from` changed to `to`, or only one of them.
  static test_case resized(const test_case& c, std::int64_t from, std::int64_t to, int only) {
    test_case r = c;
    r.given = nullptr;
    int k = 0;
    for (operand_recipe& x : r.in)
      for (int i = 0; i < x.dims.rank; ++i)
        if (x.dims[i] == from && (only < 0 || k++ == only)) x.dims.set(i, to);
    return r;
  }
  bool shrink_axis(test_case& c, std::int64_t size, int only) {
    // takes the smallest size that fails: 1, then halfway up to the size
    for (std::int64_t to = 1; to < size; to += std::max<std::int64_t>(1, (size - to) / 2)) {
      test_case smaller = resized(c, size, to, only);
      if (!fails(smaller)) continue;
      c = std::move(smaller);
      return true;
    }
    return false;
  }
  bool shrink_shapes(test_case& c) {
    std::set<std::int64_t> sizes;
    for (const operand_recipe& x : c.in)
      for (int i = 0; i < x.dims.rank; ++i)
        if (x.dims[i] > 1) sizes.insert(x.dims[i]);
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      if (shrink_axis(c, *size, -1)) return true;
      int there = 0;
      for (const operand_recipe& x : c.in)
        for (int i = 0; i < x.dims.rank; ++i) there += x.dims[i] == *size ? 1 : 0;
      for (int k = 0; there > 1 && k < there; ++k)
        if (shrink_axis(c, *size, k)) return true;
    }
    return false;
  }
  /// Replaces numbers by ones: whole operands first, then halves, down to single elements.
  void shrink_numbers(test_case& c) {
    std::vector<array> numbers;
    for (std::size_t k = 0; k < c.in.size(); ++k) numbers.push_back(operand_numbers(c, k));
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      if (!is_floating(numbers[k].type)) continue;
      std::vector<std::pair<std::size_t, std::size_t>> ranges{{0, numbers[k].at.size()}};
      while (!ranges.empty() && left_ > 0) {
        const auto [first, end] = ranges.back();
        ranges.pop_back();
        if (first == end || std::all_of(numbers[k].at.begin() + std::ptrdiff_t(first), numbers[k].at.begin() + std::ptrdiff_t(end),
                                        [](double x) { return x == 1; }))
          continue;
        auto simpler = numbers;
        std::fill(simpler[k].at.begin() + std::ptrdiff_t(first), simpler[k].at.begin() + std::ptrdiff_t(end), 1.0);
        test_case r = c;
        r.given = std::make_shared<const std::vector<array>>(simpler);
        if (fails(r)) {
          numbers = std::move(simpler);
        } else if (end - first > 1) {
          ranges.push_back({(first + end) / 2, end});
          ranges.push_back({first, (first + end) / 2});
        }
      }
    }
    c.given = std::make_shared<const std::vector<array>>(std::move(numbers));
  }
};

}  // namespace isotope::conform
