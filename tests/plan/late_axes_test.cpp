/// Sizes known late on any axis: a plan for limits gives, at other sizes, the bits of the plan of those sizes.
#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

using namespace plan_test;

namespace late_axes_test {

using isotope::dim;
using isotope::Machine;
using isotope::scalar_dim;
using isotope::scope;
using isotope::tensor;

constexpr int limit = 9, other_limit = 7;
/// The sizes of two dimensions, each a constant or known late.
struct sizes {
  dim S, T;
};
constexpr sizes late{scalar_dim{limit, 3}, scalar_dim{other_limit, 15}};

/// Tokens (B, S, C) through products, norms, reductions, gathered rows and element-wise bodies.
struct tokens : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    auto x = s.input("x", {2, S, 8}) + embedding(s.param("table", {4, 8}, init::normal(1)), s.input("ids", {2, S}, dtype::i32));
    x = x + nn::mlp(s / "mlp", nn::layer_norm(s / "ln", x), 16);
    x = x * softmax(x, 1) + cumsum(x, 1) * s.input("scale", {2, 1, 8}) + sum(x, {1}, true);
    const auto all = mean(x, {1}, true) * prod(tanh(x), {0, 1}, true) + mean(x, {0, 1, 2}, true);
    return nn::linear(s / "out", concat<M>({nn::rms_norm(s / "rms", x + all), exp(x * -1.0)}, -1), 5);
  }
};
/// Attention (B, S, C), packed and not, causal and not, in a window, masked, and over T keys.
struct attending : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {2, S, 8}), qkv = nn::linear(s / "qkv", x, 24);
    const auto [q, k, v] = split<3>(qkv);
    const auto y = attention(qkv, 2) + attention(qkv, 2, {.window = 3}) + attention(qkv, s.input("mask", {2, S}), 2, {.causal = false});
    const auto far = s.input("far", {2, T, 8});
    return y + attention(q, k, v, 4) + attention(q, far, tanh(far), 2, {.causal = false});
  }
};
/// One query over the keys before it, as in decoding.
struct decoding : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto q = s.input("q", {2, 1, 8}), keys = s.input("keys", {2, S, 8});
    return attention(q, keys, tanh(keys), 2) + attention(q, keys, keys, 2, {.window = 3});
  }
};
/// Views of (B, S, C), which bodies and kernels read: other orders, ranges, parts, repeated axes, other shapes.
struct viewing : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {4, S, 8}), turned = permute(x, {1, 0, 2}), low = narrow(x, 0, 1, 2), part = narrow(low, 2, 3, 4);
    const auto heads = rope(reshape(x, {4, S, 2, 4}));
    const auto [front, back] = split<2>(x, 0);
    const auto joined = concat<M>({front * back, narrow(x, 0, 2, 2)}, 0);                               // (4, S, 8)
    const auto flat = reshape(permute(heads, {1, 0, 2, 3}), {S, 32});                                   // (S, 32)
    const auto wide = nn::linear(s / "wide", concat<M>({flat, reshape(turned + 1.0, {S, 32})}, 1), 8);  // (S, 8)
    const auto padded = pad(part, 2, 1, 8) + pad(low * low, 0, 0, 2);                                   // (2, S, 8)
    const auto more = expand(reshape(wide, {1, S, 8}), {4, S, 8}) + matmul(x, matmul(transpose(x), x));
    return permute(joined + more * x, {0, 2, 1}) + transpose(concat<M>({padded, transpose(transpose(low))}, 0));
  }
};
/// Choices, draws and transforms within rows, of which there are S in each of two.
struct choosing : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {2, S, 8});
    const auto chosen = cast(argmax(x, 2), dtype::f32) + cast(categorical(x, 0.5), dtype::f32);  // (2, S)
    const auto ranks = top_k(x, 3).first * max(x, {2}, true) + narrow(min(x, {0}), 1, 2, 3);
    return concat<M>({irfft(rfft(x), 8), ranks, cast(reshape(chosen, {2, S, 1}), x.type())}, 2);
  }
};
/// A loss over as many rows as there are.
struct losing : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    return cross_entropy(nn::linear(s / "head", s.input("x", {2, S, 8}), 4), s.input("targets", {2, S}, dtype::i32));
  }
};
/// (S, T) and (S, S) scores, with both sizes in one tensor, in any order.
struct scoring : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {2, S, 8}), z = s.input("z", {2, T, 8});
    const auto scores = softmax(matmul(x, transpose(z)));                                   // (2, S, T)
    const auto turned = sum(permute(scores, {2, 1, 0}) * s.input("w", {T, S, 2}), {0, 2});  // (S)
    const auto y = matmul(scores, z) + reshape(turned, {S, 1}) * x;
    const auto heads = permute(reshape(x, {2, S, 2, 4}), {0, 2, 1, 3});
    const auto own = softmax(matmul(heads, transpose(heads)) + fill(*s.machine, {S, S}, x.type(), 0.5));  // (2, 2, S, S)
    const auto mixed = reshape(permute(matmul(narrow(own, 1, 1, 1), narrow(heads, 1, 0, 1)), {0, 2, 1, 3}), {2, S, 4});
    return concat<M>({y, mixed}, 2);
  }
};
/// Rows of late length: the innermost axis, over which a product sums, too.
struct inner : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {3, S}), w = s.input("w", {S, 4});
    const auto y = softmax(x) + cumsum(tanh(x) * s.input("k", {3, 1})) + log_softmax(x * 2.0) + mean(x, {1}, true);
    const auto z = nn::linear(s / "z", matmul(y, w), 6);
    return concat<M>({z, transpose(sum(permute(x, {1, 0}), {0}, true) * matmul(transpose(w), transpose(y)))}, 1) * 1.5;
  }
};
/// Results whose innermost axis is late, in bodies that broadcast.
struct inner_result : sizes {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {2, T, S});
    return where(less(x, s.input("row", {S})), x * s.input("column", {T, 1}), softmax(x, 1)) +
           reshape(sum(permute(x, {0, 2, 1}), {1}), {2, T, 1}) * 0.5;
  }
};

template <class T> using element = typename T::precision::storage;

template <class T> session_of<T> forward(const auto& model) {
  auto p = isotope::plan_inference<T>(model);
  if (!p.ok()) throw std::runtime_error(p.error().line());
  return loaded<T>(std::move(*p));
}
template <class E> bool same_bytes(std::span<const E> a, std::span<const E> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}
inline isotope::step_scalars of(int S, int T) {
  auto x = scalars();
  x.sizes[3] = S;
  x.sizes[15] = T;
  return x;
}

/// At any sizes, in any order, the plan for limits gives the bits of a plan of the sizes, and touches no result behind them.
template <class T, class Model> void compare(int least = 0) {
  using E = element<T>;
  auto dynamic = forward<T>(Model{late});
  const std::array<std::array<int, 2>, 6> all{{{limit, other_limit}, {1, 1}, {4, 2}, {0, 3}, {limit, 1}, {7, 0}}};
  for (const auto& [S, other] : all) {
    if (S < least) continue;
    auto fixed = forward<T>(Model{{S, other}});
    auto y = *dynamic.template output<E>("output");
    const auto want = *fixed.template output<E>("output");
    const E untouched = E(-77.0f);
    std::fill(y.begin(), y.end(), untouched);
    dynamic.run(of(S, other), isotope::phase_always);
    fixed.run(scalars(), isotope::phase_always);
    EXPECT_TRUE(same_bytes<E>(y.first(want.size()), want)) << S << " and " << other;
    if constexpr (std::is_same_v<typename T::backend, isotope::backend::cpu>) {  // elsewhere `output` is a copy of all there is
      for (const auto& e : y.subspan(want.size())) ASSERT_TRUE(e == untouched) << S << " and " << other;
    }
  }
}

template <class T> struct late_axes : testing::Test {};
TYPED_TEST_SUITE(late_axes, every_target, target_name);

TYPED_TEST(late_axes, of_tokens_give_the_bits_of_that_size) { compare<TypeParam, tokens>(); }
TYPED_TEST(late_axes, under_attention_give_the_bits_of_that_size) {
  compare<TypeParam, attending>();
  compare<TypeParam, decoding>(1);
  auto dynamic = forward<TypeParam>(decoding{late});
  dynamic.run(of(0, 0), isotope::phase_always);  // no keys: nothing is seen
  const auto y = *dynamic.template output<element<TypeParam>>("output");
  for (const auto& e : y) EXPECT_EQ(float(e), 0);
}
TYPED_TEST(late_axes, of_views_give_the_bits_of_that_size) { compare<TypeParam, viewing>(); }
TYPED_TEST(late_axes, of_rows_that_are_chosen_from_give_the_bits_of_that_size) {
  compare<TypeParam, choosing>();
  auto dynamic = forward<TypeParam>(losing{late});
  for (const int S : {4, limit, 0, 1}) {
    auto fixed = forward<TypeParam>(losing{{S, 1}});
    dynamic.run(of(S, 1), isotope::phase_always);
    fixed.run(scalars(), isotope::phase_always);
    EXPECT_EQ((*dynamic.template output<float>("output"))[0], (*fixed.template output<float>("output"))[0]) << S;
  }
}
TYPED_TEST(late_axes, two_in_a_tensor_give_the_bits_of_those_sizes) { compare<TypeParam, scoring>(); }
TYPED_TEST(late_axes, that_are_innermost_give_the_bits_of_that_size) {
  compare<TypeParam, inner>();
  compare<TypeParam, inner_result>();
}

}  // namespace late_axes_test
