#pragma once
#include "../core/target.hpp"
#include "../op/cross_entropy.hpp"
#include "../op/matmul.hpp"
#include "../op/view.hpp"

namespace isotope::nn {

/// loss = cross_entropy(x w^T, targets), in nats: the head of a language model, whose classes are the rows of w.
///
/// If the backend wants row lengths that are a multiple of row_multiple, and that costs at most a sixteenth more, w is padded by rows of zeros. The columns
/// that this adds to the logits are not classes.
///
/// @param x        (..., C)
/// @param w        (V, C)
/// @param targets  (...)  i32; rows whose target is outside [0, V) do not count
/// @return         ()     accumulation format
template <Machine M> constexpr tensor<M> classify(tensor<M> x, tensor<M> w, tensor<M> targets, place at = place::current()) {
  const std::int64_t V = w[0], multiple = row_multiple<typename M::target>(), rows = (V + multiple - 1) / multiple * multiple;
  const auto padded = rows - V <= V / 16 ? pad(w, 0, 0, rows, at) : w;
  return cross_entropy(matmul(x, transpose(padded, at), 1, at), targets, V, at);
}

}  // namespace isotope::nn
