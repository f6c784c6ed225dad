#pragma once
#include "../op/gelu.hpp"
#include "linear.hpp"

namespace isotope::nn {

/// y = c_proj(gelu(c_fc(x))): the feed-forward layer of GPT-2.  x (..., C), hidden width H; y (..., C).
/// The standard deviations are of the initial weights of c_fc, and of c_proj, whose result is added to the residual stream.
template <class Gelu = op::gelu_tanh, Machine M>
constexpr tensor<M> mlp(scope<M> s, tensor<M> x, std::int64_t hidden, double deviation = 0.02, double residual_deviation = 0.02,
                        place at = place::current()) {
  const auto h = gelu<Gelu>(linear(s / "c_fc", x, hidden, deviation, true, parallel::columns(), at), at);
  return linear(s / "c_proj", h, x.cols(), residual_deviation, true, parallel::rows(), at);
}

}  // namespace isotope::nn
