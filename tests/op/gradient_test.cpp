#include "gradient.hpp"

#include <isotope/nn/nn.hpp>
#include <isotope/nn/scored_attention.hpp>

#include <boost/mp11/algorithm.hpp>

namespace isotope::op_test {
namespace gradient_test {

using T = real_tensor;

/// x, and 0 where it is NaN.
T where_known(T x) { return where(equal(x, x), x, fill(*x.machine, {}, x.type())); }

const differentiable functions[] = {
    // element-wise ops with broadcasting at the front, in the middle and from scalars
    {"add", [](source& in) { return in("a", {2, 3, 4}) + in("b", {3, 1}); }},
    {"add_mid_axis", [](source& in) { return in("a", {2, 1, 4}) + in("b", {2, 3, 1}); }},
    {"sub", [](source& in) { return in("a", {3, 1, 2}) - in("b", {1, 4, 2}); }},
    {"mul", [](source& in) { return in("a", {2, 3}) * in("b", {5, 1, 3}); }},
    {"mul_scalar_tensor", [](source& in) { return in("a", {2, 3}) * in("b", {}); }},
    {"div", [](source& in) { return in("a", {2, 1, 3}) / in("b", {4, 1}); }, 0.5, 2},
    {"one_tensor_on_both_sides",
     [](source& in) {
       const T a = in("a", {2, 3});
       return a * a / (a + 3.0) - a;
     }},
    {"scale_and_shift", [](source& in) { return (in("a", {5}) * 0.3 + 2.0) / 4.0; }},
    {"where",
     [](source& in) {
       const T a = in("a", {3, 1, 4}), b = in("b", {2, 1});
       return where(less(a, b), a * b, b - a);
     }},
    {"where_broadcast_operands",
     [](source& in) {
       const T a = in("a", {4}, false);
       return where(less(a, in("b", {3, 1}, false)), in("c", {3, 1}), in("d", {2, 1, 4}));
     }},
    {"exp", [](source& in) { return exp(in("a", {7})); }},
    {"log", [](source& in) { return log(in("a", {7})); }, 0.3, 3},
    {"sqrt", [](source& in) { return sqrt(in("a", {7})); }, 0.3, 3},
    {"square", [](source& in) { return square(in("a", {7})); }},
    {"tanh", [](source& in) { return tanh(in("a", {7})); }, -2, 2},
    {"sigmoid", [](source& in) { return sigmoid(in("a", {7})); }, -3, 3},
    {"relu", [](source& in) { return relu(in("a", {11})); }},
    {"silu", [](source& in) { return silu(in("a", {11})); }, -4, 4},
    {"gelu_tanh", [](source& in) { return gelu<op::gelu_tanh>(in("a", {11})); }, -4, 4},
    {"gelu_erf", [](source& in) { return gelu<op::gelu_erf>(in("a", {11})); }, -4, 4},
    {"erf", [](source& in) { return erf(in("a", {7})); }, -2, 2},
    {"rsqrt", [](source& in) { return rsqrt(in("a", {7})); }, 0.3, 3},
    {"sin", [](source& in) { return sin(in("a", {7})); }, -4, 4},
    {"cos", [](source& in) { return cos(in("a", {7})); }, -4, 4},
    {"neg_and_abs", [](source& in) { return square(abs(in("a", {7})) + neg(in("b", {7}))); }},
    {"maximum", [](source& in) { return square(maximum(in("a", {3, 1}), in("b", {4}))); }},
    {"minimum", [](source& in) { return square(minimum(in("a", {3, 1}), in("b", {4}))); }},
    {"clamp", [](source& in) { return square(clamp(in("a", {11}), -0.5, 0.25)); }},
    {"pow", [](source& in) { return pow(in("a", {3, 1}), in("b", {4})); }, 0.5, 2},
    {"pow_of_constants", [](source& in) { return pow(in("a", {5}), 3) + pow(in("a", {5}), -1.5); }, 0.5, 2},
    // reductions
    {"sum_middle", [](source& in) { return sum(in("a", {2, 3, 4}), {1}); }},
    {"sum_kept", [](source& in) { return square(sum(in("a", {2, 3, 4}), {0, 2}, true)); }},
    {"mean", [](source& in) { return square(mean(in("a", {2, 3, 4}), {0, -1})); }},
    {"mean_of_a_transpose", [](source& in) { return square(mean(transpose(in("a", {3, 4})), {0})); }},
    {"max", [](source& in) { return max(in("a", {3, 5, 2}), {1}); }},
    {"min", [](source& in) { return min(in("a", {3, 5, 2}), {0, 2}, true); }},
    {"prod", [](source& in) { return prod(in("a", {5})); }},
    {"prod_of_outer_axes_of_a_transpose", [](source& in) { return square(prod(transpose(in("a", {2, 3, 2})), {0, -1}, true)); }, 0.5, 2},
    {"prod_of_the_middle", [](source& in) { return square(prod(in("a", {2, 3, 4}), {1})); }, 0.5, 2},
    {"cumsum", [](source& in) { return square(cumsum(in("a", {2, 3, 4}), 1)); }},
    {"cumsum_reversed", [](source& in) { return square(cumsum(in("a", {5}), 0, true)); }},
    {"logsumexp", [](source& in) { return square(logsumexp(in("a", {3, 4}), {1})); }},
    {"logsumexp_kept", [](source& in) { return logsumexp(in("a", {2, 3, 4}), {0, 2}, true); }},
    {"norm", [](source& in) { return norm(in("a", {3, 4}), {0}); }},
    {"var", [](source& in) { return var(in("a", {3, 4}), {-1}) + std_dev(in("b", {3, 5}), {-1}, 0); }},
    {"take_along", [](source& in) { return square(where_known(take_along(in("a", {3, 4}), in.ids({3, 2}, 4), -1))); }},
    {"take_along_the_first_axis", [](source& in) { return square(where_known(take_along(in("a", {4, 3}), in.ids({5, 3}, 4), 0))); }},
    {"scatter_add", [](source& in) { return square(scatter_add(in("a", {3, 4}), in("b", {3, 7}), in.ids({3, 7}, 4))); }},
    {"scatter_add_along_the_middle", [](source& in) { return square(scatter_add(in("a", {2, 4, 3}), in("b", {2, 5, 3}), in.ids({2, 5, 3}, 4), 1)); }},
    {"index_select", [](source& in) { return square(where_known(index_select(in("a", {2, 4, 3}), in.ids({6}, 4), 1))); }},
    {"flip_and_roll", [](source& in) { return flip(in("a", {3, 4}), 0) * roll(in("b", {3, 4}), -1, 1) * roll(in("c", {3, 4}), 2, 0); }},
    {"triangles", [](source& in) { return square(tril(in("a", {3, 4}))) + triu(in("b", {2, 3, 4}), 1); }},
    {"parts_stack_repeat_tile",
     [](source& in) {
       const auto [a, b, c] = parts(in("a", {6, 2}), std::array<std::int64_t, 3>{1, 3, 2}, 0);
       return stack({repeat(a, 3, 0), b, narrow(tile(c, 2, 0), 0, 1, 3) * 2.0}, 1);
     }},
    {"squared_differences", [](source& in) { return nn::mse(in("a", {3, 4}), in("b", {4})) + nn::huber(in("c", {7}), in("d", {7}), 0.5); }},
    {"binary_cross_entropies",
     [](source& in) {
       return nn::binary_cross_entropy(in("a", {7}), in("b", {7})) + nn::binary_cross_entropy_with_logits(in("c", {7}), in("d", {7}));
     },
     0.05, 0.95},
    {"kl_divergence", [](source& in) { return nn::kl_divergence(in("a", {7}), in("b", {7}), nn::reduction::none); }, 0.05, 0.95},
    {"class_loss",
     [](source& in) {
       return nn::class_loss(in("a", {6, 4}), in.ids({6}, 4), {.smoothing = 0.2, .z = 0.1}, in("w", {4}, false));
     }},
    {"class_loss_of_rows", [](source& in) { return nn::class_loss(in("a", {2, 3, 4}), in.ids({2, 3}, 4), {.how = nn::reduction::none}); }},
    // views, views of views, several views of one tensor
    {"transpose", [](source& in) { return transpose(in("a", {2, 3, 4})) * in("b", {3}); }},
    {"permute_narrow_reshape",
     [](source& in) { return reshape(narrow(permute(in("a", {2, 3, 4}), {2, 0, 1}), 0, 1, 2), {3, 4}) * in("b", {4}); }},
    {"narrow_of_narrow", [](source& in) { return square(narrow(narrow(in("a", {5, 6}), 1, 1, 4), 0, 2, 2)); }},
    {"overlapping_narrows",
     [](source& in) {
       const T a = in("a", {6});
       return narrow(a, 0, 0, 4) * narrow(a, 0, 2, 4);
     }},
    {"expand", [](source& in) { return square(expand(in("a", {3, 1}), {2, 3, 4})) * in("b", {4}); }},
    {"expand_of_a_sum",
     [](source& in) {
       const T a = in("a", {2, 3});
       return a * expand(sum(a, {1}, true), {2, 3});
     }},
    {"contiguous", [](source& in) { return contiguous(transpose(in("a", {3, 4}))) * in("b", {3}); }},
    {"concat",
     [](source& in) {
       const T a = in("a", {2, 3});
       return square(concat({a, in("b", {2, 1}), transpose(in("c", {2, 2})), a}, 1));
     }},
    {"split",
     [](source& in) {
       const auto [a, b, c] = split<3>(in("a", {2, 6}), 1);
       return a * c + b;
     }},
    {"split_of_a_transpose_part_unused",
     [](source& in) {
       const auto p = split<2>(transpose(in("a", {4, 3})), 1);
       return square(p[1]);
     }},
    // matmuls
    {"matmul", [](source& in) { return matmul(in("a", {3, 4}), in("b", {4, 2})); }},
    {"matmul_nt", [](source& in) { return matmul(in("a", {3, 4}), transpose(in("b", {2, 4})), 0.5); }},
    {"matmul_tn", [](source& in) { return matmul(transpose(in("a", {4, 3})), in("b", {4, 2})); }},
    {"matmul_tt", [](source& in) { return matmul(transpose(in("a", {4, 3})), transpose(in("b", {2, 4}))); }},
    {"matmul_one_matrix_for_all_batches", [](source& in) { return matmul(in("a", {2, 3, 4}), in("b", {4, 2})); }},
    {"matmul_transposed_matrix_for_all_batches", [](source& in) { return matmul(in("a", {2, 3, 4}), transpose(in("b", {2, 4})), -1.5); }},
    {"matmul_repeated_on_the_left", [](source& in) { return matmul(in("a", {3, 4}), in("b", {2, 4, 2})); }},
    {"matmul_batches_broadcast_in_the_middle", [](source& in) { return matmul(in("a", {2, 1, 3, 2}), in("b", {3, 2, 4})); }},
    {"matmul_transposed_batches", [](source& in) { return matmul(transpose(in("a", {2, 4, 3})), transpose(in("b", {2, 2, 4}))); }},
    {"matmul_alpha_beta", [](source& in) { return matmul(in("a", {3, 4}), in("b", {4, 2}), in("c", {3, 2}), 0.7, -0.4); }},
    {"matmul_with_itself",
     [](source& in) {
       const T a = in("a", {3, 3});
       return matmul(a, matmul(transpose(a), a));
     }},
    // ops on rows
    {"softmax_last", [](source& in) { return softmax(in("a", {3, 4})); }, -2, 2},
    {"softmax_middle", [](source& in) { return softmax(in("a", {2, 4, 3}), 1); }, -2, 2},
    {"log_softmax_last", [](source& in) { return log_softmax(in("a", {3, 4})); }, -2, 2},
    {"log_softmax_first", [](source& in) { return log_softmax(in("a", {4, 3}), 0); }, -2, 2},
    {"layer_norm", [](source& in) { return layer_norm(in("x", {2, 3, 5}), in("w", {5}), in("b", {5})); }},
    {"layer_norm_of_a_transpose",
     [](source& in) { return square(layer_norm(transpose(in("x", {5, 3})), in("w", {5}), in("b", {5}), 0.1)); }},
    {"rms_norm", [](source& in) { return rms_norm(in("x", {2, 3, 5}), in("w", {5})); }},
    {"rope", [](source& in) { return rope(in("x", {2, 3, 2, 4}), 100, 2); }},
    {"rope_of_pairs_of_a_part", [](source& in) { return square(rope(in("x", {2, 3, 2, 6}), {.base = 100, .width = 4, .interleaved = true})); }},
    {"sort", [](source& in) { return square(sort(in("a", {3, 4}), 0).first) + exp(sort(in("b", {3, 4}), -1, true).first); }},
    {"scored_attention",
     [](source& in) {
       const nn::scored_attention_options o{.causal = true, .before = 1, .left = 2, .soft_cap = 0.7};
       return nn::scored_attention(in("q", {2, 4, 3, 2}), in("k", {2, 2, 4, 2}), in("v", {2, 2, 4, 3}), in("mask", {4, 1, 4}), o);
     }},
    {"scored_attention_without_keys",
     [](source& in) {
       const T mask = less(fill(in.on(), {}, dtype::f64), in("mask", {1, 1, 3, 4}, false) - fill(in.on(), {3, 1}, dtype::f64, 2));
       return nn::scored_attention(in("q", {1, 2, 3, 2}), in("k", {1, 2, 4, 2}), in("v", {1, 2, 4, 3}), mask) + in("b", {1, 2, 3, 3});
     }},
    {"relative_bias", [](source& in) { return square(nn::relative_bias(in("table", {8, 2}), 3, 12)); }},
    {"rope_of_packed_tokens",
     [](source& in) { return square(rope(in("x", {2, 3, 3, 4}), in.ids({3}, 50), {.base = 100, .scaling = {16, 4, 1, 4}, .heads = 2})); }},
    // Fourier transforms: even and odd lengths, with and without a middle bin, along another axis, there and back
    {"fft", [](source& in) { return fft(in("x", {2, 6, 2})); }},
    {"fft_of_a_prime_length", [](source& in) { return square(fft(in("x", {5, 2}), fft_norm::ortho)); }},
    {"ifft_of_another_axis", [](source& in) { return ifft(permute(in("x", {4, 3, 2}), {1, 0, 2})); }},
    {"rfft_even", [](source& in) { return square(rfft(in("x", {2, 6}))); }},
    {"rfft_odd", [](source& in) { return square(rfft(in("x", {2, 5}), fft_norm::forward)); }},
    {"rfft_of_one_and_of_two_points", [](source& in) { return sum(rfft(in("x", {2, 1}))) * rfft(in("y", {2, 2})); }},
    {"irfft_even", [](source& in) { return square(irfft(in("x", {2, 4, 2}), 6)); }},
    {"irfft_odd", [](source& in) { return square(irfft(in("x", {2, 4, 2}), 7, fft_norm::ortho)); }},
    {"rfft_and_irfft_around_a_filter",
     [](source& in) {
       const T x = in("x", {2, 8});
       return square(irfft(rfft(x) * in("w", {5, 1}), 8)) + x;
     }},
    {"dropout",
     [](source& in) {
       const T a = in("a", {4, 5});
       return dropout(a * a, 0.4);
     }},
    {"cast_to_the_same_format", [](source& in) { return square(cast(in("a", {5}), dtype::f64)); }},
    {"embedding", [](source& in) { return square(embedding(in("table", {6, 3}), argmax(in("scores", {2, 4, 6}, false)))); }},
    {"embedding_tied_with_the_output_matrix",
     [](source& in) {
       const T table = in("table", {6, 3}), x = embedding(table, argmax(in("scores", {2, 4, 6}, false)));
       return matmul(x * in("w", {3}), transpose(table));
     }},
    {"embedding_looked_up_twice",
     [](source& in) {
       const T table = in("table", {6, 3}), id = argmax(in("scores", {4, 6}, false)), other = argmax(in("more scores", {4, 6}, false));
       return embedding(table, id) * embedding(table, other) + embedding(table * 2.0, id);
     }},
    {"cross_entropy", [](source& in) { return cross_entropy(in("logits", {2, 6, 5}), in.ids({2, 6}, 5)); }, -2, 2},
    {"cross_entropy_of_a_tied_head",
     [](source& in) {
       const T w = in("w", {5, 3});
       return cross_entropy(matmul(matmul(in("x", {8, 5}), w), transpose(w)), in.ids({8}, 5));
     }},
    // attention: causal and not, masks, grouped heads, more keys than queries
    {"attention_packed", [](source& in) { return attention(in("qkv", {2, 3, 12}), 2); }},
    {"attention_packed_grouped", [](source& in) { return attention(in("qkv", {1, 4, 16}), 4, {.kv_heads = 2}); }},
    {"attention_packed_both_ways", [](source& in) { return attention(in("qkv", {2, 3, 12}), 2, {.causal = false, .scale = 0.3}); }},
    {"attention_masked",
     [](source& in) {
       const T mask = in("mask", {2, 3}, false);
       return attention(in("qkv", {2, 3, 12}), where(less(mask, in("edge", {1}, false)), mask, mask * 1e9 - 1e10), 2, {.causal = false});
     }},
    {"attention_that_drops", [](source& in) { return attention(in("qkv", {2, 5, 12}), 2, {.dropout = 0.4}); }},
    {"attention_in_a_window", [](source& in) { return attention(in("qkv", {2, 5, 12}), 2, {.window = 2}); }},
    {"attention_separate", [](source& in) { return attention(in("q", {2, 2, 4}), in("k", {2, 4, 4}), in("v", {2, 4, 4}), 2); }},
    {"attention_separate_grouped_masked",
     [](source& in) {
       return attention(in("q", {1, 3, 8}), in("k", {1, 5, 2}), in("v", {1, 5, 2}), in("mask", {1, 5}, false), 4,
                        {.causal = false, .kv_heads = 1});
     }},
    {"attention_of_one_tensor",
     [](source& in) {
       const T x = in("x", {2, 3, 4});
       return attention(x, x, x, 2);
     }},
    {"attention_of_views",
     [](source& in) {
       const auto [q, k, v] = split<3>(matmul(in("x", {2, 3, 4}), in("w", {4, 12})), -1);
       return attention(q, k, v, 2);
     }},
    // several ops together
    {"transformer_block",
     [](source& in) {
       T x = in("x", {1, 3, 4});
       const T w = in("ln.w", {4}), b = in("ln.b", {4});
       x = x + matmul(attention(matmul(layer_norm(x, w, b), transpose(in("qkv", {12, 4}))), 2), transpose(in("proj", {4, 4})));
       return x + matmul(gelu(matmul(layer_norm(x, w, b), transpose(in("up", {8, 4})))), transpose(in("down", {4, 8})));
     }},
};

class gradient : public ::testing::TestWithParam<differentiable> {};
INSTANTIATE_TEST_SUITE_P(of, gradient, ::testing::ValuesIn(functions), [](const auto& p) { return p.param.name; });

TEST_P(gradient, is_the_slope_by_central_differences) { EXPECT_EQ(gradient_check(GetParam()).difference(), ""); }

TEST(gradient_of_every_op, is_among_the_functions_checked) {
  std::set<std::string_view> checked = {"cast", "pad"};  // tests below check these
  for (const auto& d : functions) checked.merge(gradient_check(d).ops());
  boost::mp11::mp_for_each<library_ops>([&]<class Op>(Op) {
    if (HasGradientRule<Op>) { EXPECT_EQ(checked.count(Op::name), 1u) << Op::name; }
  });
}

/// The identity with a wrong gradient rule, which gives 2 dy.
struct wrong {
  static constexpr std::string_view name = "wrong";
  static constexpr op_kind kind = op_kind::view;
  static constexpr void infer(shape_rule& r) { r.yield_view(r.dims(0), 0, r.in(0).strides); }
  static constexpr void gradient(pullback& g) { g.give(0, scale(g.dy(), 2)); }
};
TEST(gradient_itself, of_a_wrong_rule_is_caught) {
  const differentiable d{"wrong", [](source& in) { return apply<wrong>(place::current(), {}, in("a", {3})); }};
  EXPECT_NE(gradient_check(d).difference(), "");
}

/// The gradient of sum(w f(x)), and x.
struct derivative {
  std::vector<double> x, dx;
};
template <class P, class F> derivative of(const std::vector<double>& x, const shape& dims, F f) {
  using M = eager<target<backend::cpu, P, kernels::reference>>;
  M m;
  std::vector<typename P::storage> stored;
  for (double v : x) stored.push_back(typename P::storage(typename P::accum(v)));
  m.set("x", std::span<const typename P::storage>(stored));
  const auto p = scope<M>{&m, {}}.param("x", dims);
  const auto loss = f(p);
  differentiate(m, loss.id);
  EXPECT_TRUE(m.ok()) << std::string(m.g.error.view());
  return {m.read(p), m.ok() ? m.read(m.g.params[0].grad) : std::vector<double>{}};
}
TEST(gradient_of_ties, is_shared_by_the_operands_of_maximum_and_minimum) {
  const auto halves = [](auto x, auto f) { return sum(f(narrow(x, 0, 0, 3), narrow(x, 0, 3, 3)) * 2.0); };
  const std::vector<double> x = {1, 2, 3, 2, 2, 2};
  EXPECT_EQ(of<precision::f64>(x, {6}, [&](auto v) { return halves(v, [](auto a, auto b) { return maximum(a, b); }); }).dx,
            (std::vector<double>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(of<precision::f64>(x, {6}, [&](auto v) { return halves(v, [](auto a, auto b) { return minimum(a, b); }); }).dx,
            (std::vector<double>{2, 1, 0, 0, 1, 2}));
}
TEST(gradient_at_a_bend, is_0_for_abs_at_0_and_dy_for_clamp_at_its_bounds) {
  EXPECT_EQ(of<precision::f64>({-2, 0, 3}, {3}, [](auto x) { return sum(abs(x)); }).dx, (std::vector<double>{-1, 0, 1}));
  EXPECT_EQ(of<precision::f64>({-2, -1, 0, 2, 3}, {5}, [](auto x) { return sum(clamp(x, -1, 2)); }).dx,
            (std::vector<double>{0, 1, 1, 1, 0}));
}
TEST(gradient_of_a_power, is_0_where_the_exponent_or_the_base_is_0) {
  EXPECT_EQ(of<precision::f64>({0, 3, 2}, {3}, [](auto x) { return sum(pow(x, x * 0.0)); }).dx, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(of<precision::f64>({0, 2}, {2}, [](auto x) { return sum(pow(x * 0.0, x + 1.0)); }).dx, (std::vector<double>{0, 0}));
}
TEST(gradient_of_ties, is_shared_by_the_elements_that_attain_the_extremum) {
  EXPECT_EQ(of<precision::f64>({3, 1, 3, 3}, {4}, [](auto x) { return max(x); }).dx, (std::vector<double>{1. / 3, 0, 1. / 3, 1. / 3}));
  EXPECT_EQ(of<precision::f64>({3, 1, 1, 3}, {4}, [](auto x) { return min(x); }).dx, (std::vector<double>{0, .5, .5, 0}));
}
TEST(gradient_of_products, is_the_product_of_the_others_where_some_are_zero) {
  const auto rows = [](auto x) { return sum(prod(x, {1})); };
  EXPECT_EQ(of<precision::f64>({2, 0, 3, 4, 5, 2, 0, 0, 7}, {3, 3}, rows).dx, (std::vector<double>{0, 6, 0, 10, 8, 20, 0, 0, 0}));
}
TEST(gradient_of_quotients, is_rounded_to_bf16_once) {
  const std::size_t n = 1000;
  const auto weighted = [](auto x) {
    const auto [a, b, w] = split<3>(x);
    return sum(a / b * w);
  };
  std::vector<double> x;  // bf16 numbers in [1, 2)
  for (std::uint64_t i = 0; i < 3 * n; ++i) x.push_back(1 + double(philox(7, i, 0, 0)[0] % 128) / 128);
  const auto dx = of<precision::bf16>(x, {3 * std::int64_t(n)}, weighted).dx;
  for (std::size_t i = 0; i < n; ++i) {
    const double a = x[i], b = x[n + i], w = x[2 * n + i];
    // half a unit in the last place of 8 bits, and the rounding of the arithmetic
    EXPECT_LE(std::fabs(dx[i] - w / b), (0x1p-8 + 0x1p-20) * w / b);
    EXPECT_LE(std::fabs(dx[n + i] + w * a / (b * b)), (0x1p-8 + 0x1p-20) * w * a / (b * b));
  }
}
TEST(gradient_of_kinks, is_zero_at_zero) {
  EXPECT_EQ(of<precision::f64>({0.0, -0.0, 1}, {3}, [](auto x) { return sum(relu(x)); }).dx, (std::vector<double>{0, 0, 1}));
}
TEST(gradient_of_cast, passes_through_in_the_accumulation_format_of_parameters) {
  const auto d = of<precision::bf16>({1, 2}, {2}, [](auto x) { return sum(cast(cast(x, dtype::f32), dtype::bf16) * 3.0); });
  EXPECT_EQ(d.dx, (std::vector<double>{3, 3}));
}
TEST(gradient_of_pad, is_the_range_that_was_padded) {
  const auto padded = [](auto x) {
    return sum(square(apply<op::pad>(place::current(), op::pad::constants{.axis = 0, .first = 1, .size = 4}, x)));
  };
  EXPECT_EQ(of<precision::f64>({3, -2}, {2}, padded).dx, (std::vector<double>{6, -4}));
}
TEST(gradient_of_where, leaves_out_the_branch_that_was_not_taken) {
  const auto guarded = [](auto x) { return sum(where(less(x * 0.0, x), x * 2.0, x * 5.0)); };
  EXPECT_EQ(of<precision::f64>({1, -1}, {2}, guarded).dx, (std::vector<double>{2, 5}));
}

}  // namespace gradient_test
}  // namespace isotope::op_test
