#pragma once
/// The tokens of a run of a decoder: of any number of sequences, one after another, each with its sequence and its position there.
#include <string_view>

#include "../core/scope.hpp"
#include "../op/embedding.hpp"

namespace isotope::model {

template <Machine M> struct packed_tokens {
  tensor<M> tokens;    // (N) i32, ids
  tensor<M> sequence;  // (N) i32, the slot that holds the sequence's cache; a row whose sequence is not a slot is idle
  tensor<M> position;  // (N) i32
  tensor<M> rows{};    // (R) i32, the rows whose logits are wanted; without: all

  /// The inputs of a plan: `tokens`, `sequence` and `position` (N) i32 and, if R is not 0, `rows` (R) i32.
  static constexpr packed_tokens inputs(scope<M> s, int N, int R) {
    const auto input = [&](std::string_view label, int n) { return s.input(label, {n}, dtype::i32); };
    packed_tokens t{input("tokens", N), input("sequence", N), input("position", N)};
    if (R != 0) t.rows = input("rows", R);
    return t;
  }
  /// The wanted rows of features x (N, C).
  constexpr tensor<M> of_rows(tensor<M> x) const { return rows.machine == nullptr ? x : embedding(x, rows); }
};

}  // namespace isotope::model
