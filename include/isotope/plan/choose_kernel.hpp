#pragma once
/// Chooses among the variants of a kernel: the cheapest of those that fit, by predicted time.
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope {

/// What was said of one variant when a kernel was chosen.
struct considered_variant {
  std::string name;
  double seconds = 0;           // predicted; 0 where it does not fit
  std::string_view unfit = {};  // the first condition that rules it out; empty: it fits
  bool chosen = false;
  friend bool operator==(const considered_variant&, const considered_variant&) = default;
};

/// A variant of a kernel: a tile, a cluster, an algorithm. A problem holds the sizes of a step and what the device has.
///
///   std::string_view unfit(problem) const;   // the first condition that rules it out; empty: it fits
///   cost cost_of(problem) const;             // with the predicted `seconds`, and what else follows, such as the parts of K
///   std::string name(cost) const;            // for reports
template <class V, class Problem>
concept KernelVariant = requires(const V& v, const Problem& p) {
  { v.unfit(p) } -> std::convertible_to<std::string_view>;
  { v.cost_of(p).seconds } -> std::convertible_to<double>;
  { v.name(v.cost_of(p)) } -> std::convertible_to<std::string>;
};

template <class V, class Cost> struct kernel_choice {
  const V* variant = nullptr;  // null: none fits
  Cost cost{};
};

/// What a choice leaves behind, and what it is asked for.
struct kernel_choices {
  std::string wanted = {};      // take the variant whose name begins so, where there is one that fits; empty: the cheapest
  std::string remembered = {};  // take the variant of this name, where it fits and none is wanted; empty: the cheapest
  std::vector<considered_variant> all = {};
};

/// Returns the cheapest variant that fits; of equal ones, the first in the list.
/// @param variants  an array, which must outlive the choice
/// @param record    gets an entry for each variant; null: nobody asks
template <class Variants, class Problem> requires KernelVariant<typename Variants::value_type, Problem>
constexpr auto choose_kernel(const Variants& variants, const Problem& p, kernel_choices* record = nullptr) {
  using V = typename Variants::value_type;
  kernel_choice<V, decltype(std::declval<const V&>().cost_of(p))> best;
  std::size_t at = 0;
  bool found = false;  // the wanted one, or the remembered one
  for (const V& v : variants) {
    const std::string_view unfit = v.unfit(p);
    if (!unfit.empty()) {
      if (record != nullptr) record->all.push_back({v.name({}), 0, unfit});
      continue;
    }
    const auto cost = v.cost_of(p);
    bool better = best.variant == nullptr || cost.seconds < best.cost.seconds;
    if (record != nullptr) {
      record->all.push_back({v.name(cost), cost.seconds});
      const std::string& called = record->all.back().name;
      const bool wanted =
          record->wanted.empty() ? !record->remembered.empty() && called == record->remembered : called.starts_with(record->wanted);
      better = wanted || (better && !found);
      found = found || wanted;
      if (better) at = record->all.size() - 1;
    }
    if (better) best = {&v, cost};
  }
  if (record != nullptr && best.variant != nullptr) record->all[at].chosen = true;
  return best;
}

}  // namespace isotope
