#pragma once
#include "../core/scope.hpp"
#include "../op/layer_norm.hpp"
#include "../op/rms_norm.hpp"

namespace isotope::nn {

/// op layer_norm over the last axis with parameters weight (C) = 1 and bias (C) = 0.
template <Machine M> constexpr tensor<M> layer_norm(scope<M> s, tensor<M> x, double epsilon = 1e-5, place at = place::current()) {
  const auto weight = s.param("weight", {x.cols()}, init::ones, at), bias = s.param("bias", {x.cols()}, init::zeros, at);
  return isotope::layer_norm(x, weight, bias, epsilon, at);
}
/// op rms_norm over the last axis with parameter weight (C) = 1.
template <Machine M> constexpr tensor<M> rms_norm(scope<M> s, tensor<M> x, double epsilon = 1e-5, place at = place::current()) {
  return isotope::rms_norm(x, s.param("weight", {x.cols()}, init::ones, at), epsilon, at);
}

}  // namespace isotope::nn
