#pragma once
/// What generators need of a model: the sizes of any decoder whose sequences have caches.
#include <concepts>

namespace isotope {

/// The numbers that a generator counts with: ids below `vocab`, positions below `context`.
template <class S>
concept HasVocabAndContext = requires(const S& s) {
  { s.vocab } -> std::convertible_to<int>;
  { s.context } -> std::convertible_to<int>;
};
/// The model of the sizes, from {sizes, slots, tokens of a run, rows of logits (0: of all tokens)}: called with a scope, it reads the inputs of
/// model::packed_tokens and returns logits (rows, V); its `logits` does the same with tokens that are given.
template <class S>
concept HasCachedLogits = requires(const S& s) {
  { typename S::cached_logits{s, 1, 1, 0} };
};
template <class S>
concept DecoderSizes = HasVocabAndContext<S> && HasCachedLogits<S>;

static_assert(!DecoderSizes<int>);

}  // namespace isotope
