/// Each op alone, at sizes of GPT-2 124M and of the small character model.
#include "row.hpp"

#include <cmath>
#include <utility>

namespace {

using bench::cost;
namespace iso = isotope;
constexpr double word = double(iso::size_of(bench::target::precision::type));

/// A forward program of f; f(scope) gives the tensor.
template <class F> void forward(const std::string& name, cost c, F f) {
  bench::add(name, [=](benchmark::State& state) {
    auto s = bench::load(state, iso::plan_inference<bench::target>(f));
    if (!s) return;
    for (auto _ : state) s->run({}, iso::phase_always);
    bench::report(state, c);
  });
}
/// Forward and backward of f without an optimiser: the loss is the mean of f(scope, parameter).
template <class F> void both(const std::string& name, cost c, F f) {
  bench::add(name, [=](benchmark::State& state) {
    auto s = bench::load(state, iso::plan_training<bench::target>(f, {.optimizer = iso::optimizer_kind::none}));
    if (!s) return;
    for (auto _ : state) s->run({}, iso::phase_always);
    bench::report(state, c);
  });
}

void products() {
  struct size {
    std::int64_t M, N, K;
  };
  for (const size z : {size{768, 384, 128}, size{768, 512, 128}, size{768, 128, 512}, size{256, 2304, 768}, size{256, 768, 3072},
                       size{1024, 1024, 1024}}) {
    const cost c{2.0 * double(z.M * z.N * z.K), word * double(z.M * z.K + z.N * z.K + z.M * z.N)};
    const auto label = std::to_string(z.M) + "x" + std::to_string(z.N) + "x" + std::to_string(z.K);
    forward("matmul_NN/" + label, c, [=]<class M>(iso::scope<M> s) { return matmul(s.input("a", {z.M, z.K}), s.input("b", {z.K, z.N})); });
    forward("matmul_NT/" + label, c,
            [=]<class M>(iso::scope<M> s) { return matmul(s.input("a", {z.M, z.K}), transpose(s.input("b", {z.N, z.K}))); });
    forward("matmul_TN/" + label, c,
            [=]<class M>(iso::scope<M> s) { return matmul(transpose(s.input("a", {z.K, z.M})), s.input("b", {z.K, z.N})); });
  }
  // The same with what follows in the kernel's epilogue.
  for (const size z : {size{768, 512, 128}, size{256, 768, 3072}, size{256, 3072, 768}}) {
    const cost c{2.0 * double(z.M * z.N * z.K), word * double(z.M * z.K + z.N * z.K + z.M * z.N)};
    const auto label = std::to_string(z.M) + "x" + std::to_string(z.N) + "x" + std::to_string(z.K);
    const auto linear = [=]<class M>(iso::scope<M> s) {
      return matmul(s.input("a", {z.M, z.K}), transpose(s.input("b", {z.N, z.K}))) + s.input("bias", {z.N});
    };
    forward("matmul_NT_bias/" + label, c, linear);
    forward("matmul_NT_bias_gelu/" + label, c, [=]<class M>(iso::scope<M> s) { return gelu(linear(s)); });
    forward("matmul_NT_bias_residual/" + label, c, [=]<class M>(iso::scope<M> s) { return linear(s) + s.input("x", {z.M, z.N}); });
  }
}

constexpr std::int64_t B = 12, S = 64, C = 128, V = 65;  // the small character model
constexpr int heads = 4;

void rows() {
  constexpr double n = double(B * S * C), logits = double(B * S * V);
  forward("add", {n, 3 * word * n}, []<class M>(iso::scope<M> s) { return s.input("a", {B, S, C}) + s.input("b", {B, S, C}); });
  forward("gelu_tanh", {0, 2 * word * n}, []<class M>(iso::scope<M> s) { return gelu(s.input("x", {B, S, C})); });
  forward("exp", {0, 2 * word * n}, []<class M>(iso::scope<M> s) { return exp(s.input("x", {B, S, C})); });
  forward("softmax", {0, 2 * word * logits}, []<class M>(iso::scope<M> s) { return softmax(s.input("x", {B, S, V})); });
  forward("sum_rows", {n, word * n}, []<class M>(iso::scope<M> s) { return sum(s.input("x", {B * S, C}), {0}); });
  forward("transpose_copy", {0, 2 * word * n}, []<class M>(iso::scope<M> s) { return contiguous(transpose(s.input("x", {B * S, C}))); });
  forward("layer_norm", {0, 2 * word * n}, []<class M>(iso::scope<M> s) { return iso::nn::layer_norm(s / "n", s.input("x", {B, S, C})); });
  // half of the S x S scores: causal
  forward("attention", {2.0 * double(B * S * S * C), 4 * word * n},
          []<class M>(iso::scope<M> s) { return attention(s.input("qkv", {B, S, 3 * C}), heads); });
  both("attention_with_gradient", {7.0 * double(B * S * S * C), 8 * word * n},
       []<class M>(iso::scope<M> s) { return mean(attention(s.param("qkv", {B, S, 3 * C}, iso::init::normal(1)), heads)); });
  both("layer_norm_with_gradient", {0, 5 * word * n},
       []<class M>(iso::scope<M> s) { return mean(iso::nn::layer_norm(s / "n", s.param("x", {B, S, C}, iso::init::normal(1)))); });
  both("cross_entropy_with_gradient", {0, 3 * word * logits}, []<class M>(iso::scope<M> s) {
    return cross_entropy(s.param("x", {B, S, V}, iso::init::normal(1)), s.input("t", {B, S}, iso::dtype::i32));
  });
  both("embedding_with_gradient", {0, 4 * word * n}, []<class M>(iso::scope<M> s) {
    return mean(embedding(s.param("w", {V, C}, iso::init::normal(1)), s.input("ids", {B, S}, iso::dtype::i32)));
  });
}

/// 5 N log2 N operations a row, as is customary: rows that fit in a cache, one that does not, and lengths that are no power of two.
void transforms() {
  for (const auto& [rows, N] : {std::pair<std::int64_t, std::int64_t>{1024, 1024}, {1, 1 << 20}, {1024, 1000}, {4, 100003}}) {
    const double points = double(rows * N), operations = 5 * points * std::log2(double(N));
    const auto label = std::to_string(rows) + "x" + std::to_string(N);
    const iso::shape complex{rows, N, 2}, real{rows, N};
    forward("fft/" + label, {operations, 4 * word * points}, [=]<class M>(iso::scope<M> s) { return fft(s.input("x", complex)); });
    forward("rfft/" + label, {operations / 2, 2 * word * points}, [=]<class M>(iso::scope<M> s) { return rfft(s.input("x", real)); });
  }
}

/// One AdamW step on 4 Mi parameters: reads and writes weight and moments, reads the gradient.
void optimizer() {
  constexpr std::int64_t n = 4 << 20;
  bench::add("adamw", [](benchmark::State& state) {
    auto s = bench::load(state,
                         iso::plan_training<bench::target>([]<class M>(iso::scope<M> x) { return mean(x.param("w", {n / 1024, 1024})); }));
    if (!s) return;
    for (auto _ : state) s->run({}, iso::phase_last);
    bench::report(state, {0, (7.0 * 4 + (word < 4 ? 2 : 0)) * double(n)});
  });
}

}  // namespace

int main(int argc, char** argv) {
  products();
  rows();
  transforms();
  optimizer();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
