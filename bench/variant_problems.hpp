#pragma once
/// What bench_variants measures: products, attention and attention to caches, each as a model of its own.
#include <isotope/isotope.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {
namespace iso = isotope;

/// y (M, N) = x (M, K) w (K, N). Lines of x run along K in orders nt and nn, else along M; those of w run along K in order nt, else along N.
struct product {
  std::int64_t M = 1, N = 1, K = 1;
  std::string_view order = "nt";

  /// Numbers as those of a model: ones would take less power, and large products would be faster than in a model.
  template <iso::Machine M_> constexpr iso::tensor<M_> operator()(iso::scope<M_> s) const {
    const auto x = order[0] == 'n' ? s.param("x", {M, K}, iso::init::normal(1)) : transpose(s.param("x", {K, M}, iso::init::normal(1)));
    const auto w = order[1] == 'n' ? s.param("w", {K, N}, iso::init::normal(1)) : transpose(s.param("w", {N, K}, iso::init::normal(1)));
    return narrow(matmul(x, w), 0, 0, 1);  // the host gets one row
  }
  std::string text() const { return std::to_string(M) + " x " + std::to_string(N) + " x " + std::to_string(K) + " " + std::string(order); }
};

/// The products of a training step of GPT-2 124M with so many rows: forward, gradients of activations and of weights.
inline std::vector<product> products_of_gpt2(std::int64_t rows) {
  std::vector<product> all;
  for (const auto& [N, K] : {std::pair<std::int64_t, std::int64_t>{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}, {50304, 768}}) {
    all.push_back({rows, N, K, "nt"});
    all.push_back({rows, K, N, "nn"});
    all.push_back({N, K, rows, "tn"});
  }
  return all;
}
/// Sizes from 64 to 8,192, by the logarithm, in multiples of 8.
inline std::vector<product> random_products(int count) {
  std::vector<product> all;
  for (int k = 0; k < count; ++k) {
    const auto u = iso::philox(1, std::uint64_t(k), 0, 0);
    const auto size = [](std::uint32_t w) { return 8 * std::int64_t(std::exp2(3 + 7 * double(iso::unit_interval(w)))); };
    constexpr std::string_view orders[] = {"nt", "nn", "tn"};
    all.push_back({size(u[0]), size(u[1]), size(u[2]), orders[u[3] % 3]});
  }
  return all;
}

/// Attention of sequences (B, S) with the heads of GPT-2 124M, or that and its gradient.
struct attention_step {
  std::int64_t B = 1, S = 1;
  bool gradient = false;
  static constexpr std::int64_t H = 12, C = 768;

  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto qkv = s.param("qkv", {B, S, 3 * C}, iso::init::normal(1));
    const iso::op::attention_constants c{.heads = H, .kv_heads = H, .causal = true, .packed = true, .scale = 0.125};
    const auto at = iso::place::current();
    const auto y = iso::apply_op<iso::op::attention>(s.machine, {qkv.id}, c, at);
    const auto row = [](iso::tensor<M> x) { return narrow(narrow(x, 0, 0, 1), 1, 0, 1); };  // the host gets one
    if (!gradient) return row({s.machine, y.out[0]});
    const auto dy = s.param("dy", {B, S, C}, iso::init::normal(1));
    const auto dx = iso::apply_op<iso::op::attention_grad>(s.machine, {qkv.id, y.out[0], y.out[1], dy.id}, c, at);
    return row({s.machine, dx.out[0]});
  }
  std::string text() const {
    return std::string(gradient ? "gradient of attention " : "attention ") + std::to_string(B) + " x " + std::to_string(S);
  }
};
/// The sizes (B, S) of the attention that is measured.
inline constexpr std::pair<int, int> attention_sizes[] = {{4, 1024}, {32, 1024}, {8, 128}, {64, 128}, {12, 256}, {64, 256}};

/// Attention of B queries with H heads of 64 elements, each of its own sequence, to caches of G heads and T positions, of which the first `filled` are attended to.
struct cached_step {
  std::int64_t B = 1, T = 1024, filled = 512, H = 12, G = 12;

  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto q = s.param("q", {B, 64 * H}, iso::init::normal(1));
    const auto keys = s.state("keys", {B, G, T, 64}), values = s.state("values", {B, G, T, 64});
    const auto sequence = s.input("sequence", {B}, iso::dtype::i32), position = s.input("position", {B}, iso::dtype::i32);
    return narrow(attention_cached(q, keys, values, sequence, position, int(H)), 0, 0, 1);
  }
  std::string text() const {
    const std::string heads = H == 12 ? "" : ", heads " + std::to_string(H) + " of " + std::to_string(G);
    return "attention to " + std::to_string(filled) + " of " + std::to_string(T) + " cached, rows " + std::to_string(B) + heads;
  }
};
/// With the heads of GPT-2 124M, and with four queries for each head of the caches. Half of the positions are filled, as on average until caches are full.
inline std::vector<cached_step> cached_steps() {
  std::vector<cached_step> all;
  for (const auto& [T, filled] : {std::pair<std::int64_t, std::int64_t>{1024, 512}, {256, 128}, {2048, 1024}})
    for (const std::int64_t B : {1, 2, 4, 8, 16, 32, 64}) all.push_back({B, T, filled});
  for (const std::int64_t B : {1, 4, 8, 64}) all.push_back({B, 1024, 512, 32, 8});
  for (const std::int64_t B : {1, 16}) all.push_back({B, 8192, 4096});
  return all;
}

}  // namespace bench
