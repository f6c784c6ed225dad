#pragma once
#include "../core/scope.hpp"
#include "../op/add.hpp"
#include "../op/matmul.hpp"
#include "lora.hpp"

namespace isotope::nn {

/// y = x weight^T + bias.  x (..., in), weight (out, in) ~ N(0, deviation^2), bias (out) = 0; y (..., out). Where the scope has adapters
/// for this path, their product is added (nn/lora.hpp).
template <Machine M>
constexpr tensor<M> linear(scope<M> s, tensor<M> x, std::int64_t out, double deviation = 0.02, bool bias = true,
                           place at = place::current()) {
  auto y = matmul(x, transpose(s.param("weight", {out, x.cols()}, init::normal(deviation), at), at), 1, at);
  if (bias) y = add(y, s.param("bias", {out}, init::zeros, at), at);
  return s.adapters != nullptr && s.adapters->adapts(s.path.view()) ? adapt(s, x, y, *s.adapters, at) : y;
}

}  // namespace isotope::nn
