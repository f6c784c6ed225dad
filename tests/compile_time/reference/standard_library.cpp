// Compile-time limits are multiples of the time for this file. It has standard headers, templates and constant expressions but nothing of isotope, so changes
// of isotope do not change the reference.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

/// The number of primes below n, by trial division.
constexpr int primes_below(int n) {
  std::vector<int> primes;
  for (int candidate = 2; candidate < n; ++candidate)
    if (std::none_of(primes.begin(), primes.end(), [&](int p) { return candidate % p == 0; })) primes.push_back(candidate);
  return static_cast<int>(primes.size());
}
static_assert(primes_below(1500) == 239);

template <int N> int sorted_sum(std::string_view text) {
  std::map<std::string, std::variant<int, double, std::string>> values;
  std::unordered_map<std::string, std::unique_ptr<std::array<int, N>>> arrays;
  for (int k = 0; k < N; ++k) {
    values.emplace(std::string(text) + std::to_string(k), k * 0.5);
    arrays.emplace(std::to_string(k), std::make_unique<std::array<int, N>>());
  }
  return std::accumulate(arrays.begin(), arrays.end(), static_cast<int>(values.size()),
                         [](int sum, const auto& entry) { return sum + static_cast<int>(entry.second->size()); });
}

}  // namespace

int main() { return sorted_sum<3>("a") + sorted_sum<5>("b") + sorted_sum<7>("c") == 0; }
