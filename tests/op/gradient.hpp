#pragma once
/// Compares gradients with central differences, both in f64 with the reference kernels, run op by op.
#include <isotope/backend/cpu.hpp>
#include <isotope/eager/eager.hpp>
#include <isotope/op/all.hpp>
#include <isotope/plan/differentiate.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <isotope/core/philox.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace isotope::op_test {

using machine = eager<target<backend::cpu, precision::f64, kernels::reference>>;
using real_tensor = tensor<machine>;
using arrays = std::map<std::string, std::vector<double>>;

/// Provides the parameters of a function under test.
class source {
 public:
  source(machine& m, arrays& data, double low, double high) : m_(m), data_(data), low_(low), high_(high) {}

  /// A parameter. Its values are equally spaced and in random order, so that differences do not cross ties; the parameters of a function are shifted
  /// against each other by tenths of the spacing, and no value is 0.
  real_tensor operator()(const std::string& path, const shape& dims, bool trainable = true) {
    auto& x = data_[path];
    const auto n = std::size_t(dims.count());
    if (x.empty()) {
      std::vector<std::pair<std::uint32_t, std::size_t>> order;
      for (std::size_t i = 0; i < n; ++i) order.push_back({philox(2024, i, std::uint32_t(data_.size()), 0)[0], i});
      std::sort(order.begin(), order.end());
      constexpr double moved[] = {0.3, 0.4, 0.6, 0.2, 0.7, 0.8};
      x.resize(n);
      for (std::size_t i = 0; i < n; ++i) x[order[i].second] = low_ + (high_ - low_) * (double(i) + moved[data_.size() % 6]) / double(n);
    }
    m_.set(path, std::span<const double>(x));
    return scope<machine>{&m_, {}}.param(path, dims, param_options{.trainable = trainable});
  }
  /// An input of class ids, some of them out of range.
  real_tensor ids(const shape& dims, std::int32_t classes) {
    std::vector<std::int32_t> x;
    for (std::uint64_t i = 0; i < std::uint64_t(dims.count()); ++i)
      x.push_back(i % 5 == 3 ? (i % 2 == 0 ? -1 : classes) : std::int32_t(philox(7, i, 0, 0)[0] % std::uint32_t(classes)));
    m_.set("ids", std::span<const std::int32_t>(x));
    return scope<machine>{&m_, {}}.input("ids", dims, dtype::i32);
  }
  machine& on() { return m_; }

 private:
  machine& m_;
  arrays& data_;
  double low_, high_;
};

struct differentiable {
  std::string name;
  std::function<real_tensor(source&)> f;
  double low = -1, high = 1;  // range of the parameters' values
};
inline std::ostream& operator<<(std::ostream& o, const differentiable& d) { return o << d.name; }

class gradient_check {
 public:
  explicit gradient_check(const differentiable& d) : d_(d) {}

  /// The ops that the function consists of.
  std::set<std::string_view> ops() {
    machine m;
    run(m);
    std::set<std::string_view> r;
    for (const auto& n : m.g.nodes) r.insert(n.op->name);
    return r;
  }
  /// The first element whose gradient differs from the difference quotient; empty: none.
  std::string difference() {
    machine m;
    const auto loss = run(m);
    differentiate(m, loss.id);
    if (!m.ok()) return std::string(m.g.error.view());
    int checked = 0;
    for (const auto& p : m.g.params) {
      if (!p.trainable) continue;
      const std::string path(p.path.view());
      if (p.grad < 0) return path + " has no gradient";
      if (!(m.describe(p.grad).dims == m.describe(p.value).dims)) return path + " has a gradient of another shape";
      const auto dx = m.read(p.grad);
      for (std::size_t i = 0; i < dx.size(); ++i, ++checked) {
        // Four points: with h = 2^-10 the truncation h^4 f^(5) / 30 is below 1e-13 f^(5) and the rounding 2 u |f| / h below 1e-12 |f|.
        const double h = 0x1p-10;
        const double slope = (8 * (moved(path, i, h) - moved(path, i, -h)) - (moved(path, i, 2 * h) - moved(path, i, -2 * h))) / (12 * h);
        if (!(std::fabs(dx[i] - slope) <= 1e-6 * std::fabs(slope) + 1e-9))
          return "d " + path + '[' + std::to_string(i) + "] is " + std::to_string(dx[i]) + ", differences give " + std::to_string(slope);
      }
    }
    return checked > 0 ? "" : "nothing to check";
  }

 private:
  const differentiable& d_;
  arrays data_;

  /// sum(w f(...)). The weights w differ from element to element, so that errors in the gradient of f do not cancel.
  real_tensor run(machine& m) {
    m.scalars.seed = 11;
    m.scalars.counter = 3;
    source from(m, data_, d_.low, d_.high);
    const auto y = d_.f(from);
    source weights(m, data_, 0.5, 1.5);
    return sum(y * weights("loss weights", y.dims(), false));
  }
  double moved(const std::string& path, std::size_t i, double h) {
    double& x = data_.at(path)[i];
    const double before = x;
    x += h;
    machine m;
    const auto loss = run(m);
    x = before;
    return m.read(loss)[0];
  }
};

}  // namespace isotope::op_test
