/// Random programs over a late axis in the middle give the bits of plans of their sizes.
#include "outcome.hpp"
#include "property.hpp"

#include <isotope/op/all.hpp>

using namespace plan_test;

namespace late_property_test {

constexpr int limit = 20, width = 8;

/// A chain of steps, each of which makes (2, S, width) of (2, S, width).
struct chain {
  std::vector<int> steps;
  isotope::dim S;

  static constexpr int kinds = 14;
  template <isotope::Machine M> static isotope::tensor<M> halves(isotope::tensor<M> x, int axis, int size) {
    const auto low = narrow(x, axis, 0, size / 2), high = narrow(x, axis, size / 2, size - size / 2);
    return isotope::concat<M>({high, low}, axis);
  }
  template <isotope::Machine M> isotope::tensor<M> next(isotope::scope<M> s, int kind, isotope::tensor<M> x) const {
    using namespace isotope;
    switch (kind) {
      case 0: return tanh(x) + x * 0.5;
      case 1: return softmax(x, 1);
      case 2: return matmul(x, s.input("w", {width, width}));
      case 3: return rms_norm(x, s.input("w1", {width}));
      case 4: return attention(x, x, tanh(x), 2);
      case 5: return attention(x, x, x, 4, {.causal = false});
      case 6: return x + cumsum(x, 1) * 0.1;
      case 7: return x - mean(x, {1}, true);
      case 8: return x * transpose(sum(permute(x, {0, 2, 1}), {1}, true)) + sum(x, {0}, true);
      case 9: return matmul(softmax(matmul(x, transpose(x))), x);
      case 10: return halves(x, 2, width);
      case 11: return halves(x, 0, 2);
      case 12: return reshape(permute(reshape(x, {2, S, 2, 4}), {0, 1, 3, 2}), {2, S, width});
      default: return permute(permute(x, {1, 2, 0}) * s.input("w2", {width, 2}), {2, 0, 1});
    }
  }
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    auto x = s.input("x", {2, S, width});
    for (const int kind : steps) x = next(s, kind, x);
    return x;
  }
};

template <class T> session_of<T> forward(const chain& model) {
  auto p = isotope::plan_inference<T>(model);
  if (!p.ok()) throw std::runtime_error(p.error().line());
  return loaded<T>(std::move(*p));
}

template <class T> struct late_chains : testing::Test {};
TYPED_TEST_SUITE(late_chains, every_target, target_name);

TYPED_TEST(late_chains, give_the_bits_of_plans_of_their_sizes) {
  using E = typename TypeParam::precision::storage;
  check_property(12, affordable(40), 20, [] {
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, chain::kinds));
    auto dynamic = forward<TypeParam>(chain{steps, isotope::scalar_dim{limit, 0}});
    for (int k = 0; k < 3; ++k) {
      const int S = *rc::gen::inRange(0, limit + 1);
      auto fixed = forward<TypeParam>(chain{steps, S});
      auto x = scalars();
      x.sizes[0] = S;
      dynamic.run(x, isotope::phase_always);
      fixed.run(scalars(), isotope::phase_always);
      const auto y = *dynamic.template output<E>("output"), want = *fixed.template output<E>("output");
      RC_ASSERT(std::memcmp(y.data(), want.data(), want.size_bytes()) == 0);
    }
  });
}

}  // namespace late_property_test
