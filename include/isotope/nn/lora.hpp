#pragma once
/// LoRA: linear layers get a trained product of two narrow matrices beside their weight, which stays as it is.
/// Source: Hu et al. 2021, arXiv:2106.09685, equation 3; names as in huggingface/peft.
#include <cstdint>
#include <span>
#include <string_view>

#include "../core/scope.hpp"
#include "../core/square_root.hpp"
#include "../op/add.hpp"
#include "../op/matmul.hpp"

namespace isotope::nn {

/// Which linear layers are adapted, and how. Rank 0: none.
struct lora {
  int rank = 0;                               // r, rows of A
  double alpha = 0;                           // the product is multiplied by alpha / r
  std::span<const std::string_view> targets;  // how the paths of the layers end, after a dot

  constexpr double factor() const { return alpha / rank; }
  /// The scope with these adapters and, but for them, with frozen parameters.
  template <Machine M> constexpr scope<M> within(scope<M> s) const {
    if (rank > 0) s.adapters = this, s.frozen = true;
    return s;
  }
  constexpr bool adapts(std::string_view path) const {
    for (const std::string_view t : targets)
      if (path == t || (path.ends_with(t) && path[path.size() - t.size() - 1] == '.')) return rank > 0;
    return false;
  }
};

inline constexpr std::string_view lora_a = "lora_A.weight", lora_b = "lora_B.weight";
/// Whether a parameter belongs to an adapter.
constexpr bool is_adapter(std::string_view path) { return path.ends_with(lora_a) || path.ends_with(lora_b); }

/// y + alpha/r x A^T B^T.  x (..., in), y (..., out), A lora_A.weight (r, in) ~ N(0, 1/in), B lora_B.weight (out, r) = 0, so that training
/// begins with y. `in` and `out` say how the devices of a tensor group divide the columns of x, as axis 1 of A, and those of y, as axis 0 of B.
template <Machine M>
constexpr tensor<M> adapt(scope<M> s, tensor<M> x, tensor<M> y, const lora& how, const axis_split& in = {}, const axis_split& out = {},
                          place at = place::current()) {
  s.frozen = false;
  const param_options of_a{.init = init::normal(square_root(1.0 / double(x.cols()))), .split = in}, of_b{.init = init::zeros, .split = out};
  const auto a = s.param(lora_a, {how.rank, x.cols()}, of_a, at);
  const auto b = s.param(lora_b, {y.cols(), how.rank}, of_b, at);
  return add(y, matmul(matmul(x, transpose(a), 1, at), transpose(b), how.factor(), at), at);
}

/// A model whose linear layers are adapted. Its parameters are those of the model, which are frozen, and the adapters beside them, which
/// alone are trained. Rank 0: the model as it is.
template <class Model> struct adapted {
  Model model;
  lora how;
  template <Machine M> constexpr auto operator()(scope<M> s) const { return model(how.within(s)); }
};
template <class Model> adapted(Model, lora) -> adapted<Model>;

}  // namespace isotope::nn
