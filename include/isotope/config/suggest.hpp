#pragma once
/// "Did you mean": the nearest known spelling of an unknown word.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isotope::config {

/// Returns the fewest insertions, deletions, replacements and swaps of neighbours that turn a into b.
/// Source: Damerau 1964; the "optimal string alignment" form, which edits no place twice.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// Returns the known word nearest to `word`, or one that ends in it after a separator; empty if none is within a third of its length.
inline std::string nearest(std::string_view word, std::span<const std::string> known) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  if (word.size() > 200) return {};  // no key is that long, and the distance is quadratic
  for (const std::string& k : known) {
    const bool tail =
        k.size() > word.size() && k.ends_with(word) && !word.empty() && std::string_view("._-").find(k[k.size() - word.size() - 1]) < 3;
    const std::size_t distance = tail ? 1 : edit_distance(word, k);
    if (distance < least) {
      best = k;
      least = distance;
    }
  }
  return std::string(best);
}

/// Returns the fix of an "unknown" failure: the suggestion, else `otherwise`.
inline std::string did_you_mean(std::string_view word, std::span<const std::string> known, std::string otherwise) {
  const std::string best = nearest(word, known);
  return best.empty() ? otherwise : "did you mean '" + best + "'?";
}

}  // namespace isotope::config
