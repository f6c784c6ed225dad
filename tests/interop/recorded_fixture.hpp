#pragma once
/// Tiny models in tests/fixtures and what transformers computes from them; tests/fixtures/make_fixtures.py made both.
#include <isotope/core/error.hpp>
#include <isotope/io/safetensors_file.hpp>

#include <fixtures_folder.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope_test {

inline std::string fixture(std::string_view kind) { return fixtures_folder + std::string(kind); }
template <class T> T must(isotope::result<T> r) {
  if (!r) throw std::runtime_error(r.error().line());
  return *std::move(r);
}
inline void must(const isotope::result<void>& r) { ASSERT_TRUE(r.ok()) << r.error().line(); }

/// expected.safetensors of a model.
struct recorded {
  isotope::io::safetensors_file file;
  explicit recorded(std::string_view kind) : file(must(isotope::io::open_safetensors(fixture(kind) + "/expected.safetensors"))) {}
  std::vector<float> floats(std::string_view name) const {
    std::vector<float> x(std::size_t(file.find(name)->elems()));
    must(file.read_f32(*file.find(name), x));
    return x;
  }
  std::vector<std::int32_t> ids(std::string_view name) const {
    std::vector<std::int32_t> x(std::size_t(file.find(name)->elems()));
    must(file.read(*file.find(name), std::as_writable_bytes(std::span(x))));
    return x;
  }
};

/// max |a - b|; NaN counts as infinitely far.
inline double apart(std::span<const float> a, std::span<const float> b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (const double d = std::fabs(double(a[i]) - double(b[i])); !(d <= worst)) worst = std::isnan(d) ? INFINITY : d;
  return worst;
}

}  // namespace isotope_test
