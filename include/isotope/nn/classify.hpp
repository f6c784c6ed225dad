#pragma once
#include "../op/cross_entropy.hpp"
#include "../op/matmul.hpp"
#include "../op/view.hpp"

namespace isotope::nn {

/// loss = cross_entropy(x w^T, targets), in nats: the head of a language model, whose classes are the rows of w.
///
/// @param x        (..., C)
/// @param w        (V, C)
/// @param targets  (...)  i32; rows whose target is outside [0, V) do not count
/// @return         ()     accumulation format
template <Machine M> constexpr tensor<M> classify(tensor<M> x, tensor<M> w, tensor<M> targets, place at = place::current()) {
  return cross_entropy(matmul(x, transpose(w, at), 1, at), targets, 0, at);
}

}  // namespace isotope::nn
