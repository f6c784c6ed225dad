#pragma once
/// Adds parameters and gradients to the outputs of a run-time plan, so that tests read them in the plan's own precision and change single elements.
#include "outcome.hpp"

namespace plan_test {

/// Adds the outputs `param <path>` (the values that ops read) and `grad <path>`.
template <isotope::Target T> isotope::dynamic_plan exposed(isotope::dynamic_plan p) {
  using isotope::value_kind;
  const auto add = [&](const char* label, const isotope::slot& s, std::int64_t at, isotope::dtype type, value_kind region) {
    isotope::port q;
    q.label << label << ' ' << s.path.view();
    q.where.at = at * isotope::size_of(type);
    q.where.bytes = s.dims.count() * isotope::size_of(type);
    q.where.dims = s.dims;
    q.where.strides = isotope::dense_strides(s.dims);
    q.where.type = type;
    q.where.region = region;
    p.outputs.push_back(q);
  };
  for (const auto& s : p.slots) {
    add("param", s, s.at, T::precision::type, value_kind::param);
    if (s.grad >= 0) add("grad", s, s.grad, T::precision::accum_type, value_kind::grad);
  }
  return p;
}

/// An exposed tensor: the memory itself if the host can access it, otherwise a copy.
template <class E, class Session> auto values(Session& s, const char* label, std::string_view path) {
  const std::string name = std::string(label) + ' ' + std::string(path);
  if constexpr (std::is_same_v<typename Session::target::backend, isotope::backend::cpu>) {
    auto r = s.template output<E>(name);
    EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().line());
    return r.ok() ? *r : std::span<E>();
  } else {
    std::vector<E> r;
    for (const auto& p : s.plan().outputs) {
      if (p.label.view() != name) continue;
      auto x = s.numbers(p.where);
      EXPECT_TRUE(x.ok()) << (x.ok() ? "" : x.error().line());
      if (x)
        for (const float y : *x) r.push_back(E(y));
    }
    return r;
  }
}
template <class E, class Session> std::map<std::string, std::vector<E>> all_values(Session& s, const char* label) {
  std::map<std::string, std::vector<E>> r;
  for (const auto& slot : s.parameters())
    if (slot.grad >= 0 || std::string_view(label) == "param") {
      const auto v = values<E>(s, label, slot.path.view());
      r[std::string(slot.path.view())].assign(v.begin(), v.end());
    }
  return r;
}

/// The largest over all tensors of max |k x - y| / max |y|; NaN if any number is NaN.
template <class E>
double relative_distance(const std::map<std::string, std::vector<E>>& x, double k, const std::map<std::string, std::vector<E>>& y) {
  double worst = 0;
  if (x.size() != y.size()) return NAN;
  for (const auto& [path, want] : y) {
    const auto& got = x.at(path);
    double largest = 0, error = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::fabs(double(want[i])));
      error = std::max(error, std::fabs(k * double(got[i]) - double(want[i])));
      if (!std::isfinite(double(got[i])) || !std::isfinite(double(want[i]))) return NAN;
    }
    worst = std::max(worst, largest == 0 ? error : error / largest);
  }
  return worst;
}

}  // namespace plan_test
