#pragma once
/// A multi-layer perceptron classifier.
#include "../core/square_root.hpp"
#include "../nn/nn.hpp"
#include "../op/cross_entropy.hpp"

namespace isotope::model {

/// Sizes of an MLP. The type is structural, so sizes can be a template argument.
struct mlp {
  int inputs = 2, hidden = 32, layers = 2, classes = 2;
  friend constexpr bool operator==(const mlp&, const mlp&) = default;
};
constexpr std::int64_t parameter_count(const mlp& m) {
  const std::int64_t H = m.hidden;
  return (m.inputs + 1) * H + (m.layers - 1) * (H + 1) * H + (H + 1) * m.classes;
}

/// Logits (B, classes) of features x (B, inputs): `layers` hidden layers with GELU. Weights ~ N(0, 2 / fan-in). A tensor group divides layers by columns and by rows
/// in turn.
template <Machine M> constexpr tensor<M> mlp_logits(scope<M> s, const mlp& m, tensor<M> x) {
  const auto how = [](int l) { return l % 2 == 0 ? nn::parallel::columns() : nn::parallel::rows(); };
  for (int l = 0; l < m.layers; ++l) x = gelu(nn::linear(s / "hidden" / l, x, m.hidden, square_root(2.0 / double(x.cols())), true, how(l)));
  return nn::linear(s / "out", x, m.classes, square_root(1.0 / m.hidden), true, m.layers % 2 == 0 ? nn::parallel{} : nn::parallel::rows());
}

/// The training loss: cross-entropy in nats of inputs `x` (batch, inputs) in the program's precision and `targets` (batch), i32.
struct mlp_loss_of {
  mlp size;
  int batch = 1;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto x = s.input("x", {batch, size.inputs});
    return cross_entropy(mlp_logits(s, size, x), s.input("targets", {batch}, dtype::i32));
  }
};
struct mlp_logits_of {
  mlp size;
  int batch = 1;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return mlp_logits(s, size, s.input("x", {batch, size.inputs})); }
};
template <mlp Size, int Batch> struct mlp_loss : mlp_loss_of {
  constexpr mlp_loss() : mlp_loss_of{Size, Batch} {}
};
template <mlp Size, int Batch> struct mlp_forward : mlp_logits_of {
  constexpr mlp_forward() : mlp_logits_of{Size, Batch} {}
};

}  // namespace isotope::model
