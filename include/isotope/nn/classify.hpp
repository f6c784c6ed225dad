#pragma once
#include "../core/target.hpp"
#include "../op/cross_entropy.hpp"
#include "../op/matmul.hpp"
#include "../op/view.hpp"

namespace isotope::nn {

/// loss = cross_entropy(x w^T, targets), in nats: the head of a language model, whose classes are the rows of w.
///
/// Where the backend's kernels like longer rows (row_multiple) and they cost at most a sixteenth more, the logits are padded to such a length by
/// rows of zeros behind w; the columns that this adds are no classes.
///
/// @param x        (..., C)
/// @param w        (V, C)
/// @param targets  (...)  i32; a target outside [0, V) leaves its row out
/// @return         ()     accumulation format
template <Machine M> constexpr tensor<M> classify(tensor<M> x, tensor<M> w, tensor<M> targets, place at = place::current()) {
  const std::int64_t V = w[0], multiple = M::target::backend::row_multiple, rows = (V + multiple - 1) / multiple * multiple;
  const auto padded = rows - V <= V / 16 ? pad(w, 0, 0, rows, at) : w;
  return cross_entropy(matmul(x, transpose(padded, at), 1, at), targets, V, at);
}

}  // namespace isotope::nn
