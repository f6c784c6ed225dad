#pragma once
/// A decoder that draws its own next tokens: what it reads next, and where, are states that the op `sample` updates, so that a run needs nothing of the host.
#include <isotope/generate/decoder_model.hpp>
#include <isotope/model/packed_tokens.hpp>
#include <isotope/nn/nn.hpp>
#include <isotope/op/sample.hpp>

namespace isotope {

/// The model of a decoding run, or of a run that reads prompts. Both return the last tokens of all slots, (recent, slots) i32, the newest first.
///
/// Inputs of both: `sampling` (slots, 4) in accumulation format and `key` (slots, 4) i32, the operands of op::sample.
/// Decoding reads the newest token of each slot and draws the next one. Input: `live` (slots) i32, the number of the slot, or -1 for one that is idle.
/// A run that reads prompts has the inputs of packed_tokens, with a row of logits for each slot: `rows` (slots). It draws the first token of slots whose prompt
/// ends in it: `draw` (slots) i32, not negative. Before, it takes over what the host knows of all slots: `history` (slots, context) i32, the tokens of each
/// slot, and `newest` (slots) i32, the position of the last one.
template <class Logits> struct drawing_model {
  Logits logits;       // of {sizes, slots, tokens of a run, slots}
  int recent = 1;      // tokens that are kept for the host
  bool reads = false;  // prompts

  template <HoldsState M> constexpr tensor<M> operator()(scope<M> s, place at = place::current()) const {
    const int slots = logits.slots, context = logits.size.context;
    const auto input = [&](std::string_view label, const shape& dims) { return s.input(label, dims, dtype::i32); };
    const scope<M> drawn = s / "drawn";
    sample_states<M> all{drawn.state("history", {slots, context}, dtype::i32), drawn.state("recent", {recent, slots}, dtype::i32),
                         drawn.state("position", {slots}, dtype::i32)};
    packed_rows<M> t;
    tensor<M> draw;
    if (reads) {
      all.history = assign(all.history, input("history", {slots, context}));
      all.position = assign(all.position, input("newest", {slots}));
      t = packed_rows<M>::inputs(s, logits.tokens, slots);
      draw = input("draw", {slots});
    } else {
      draw = input("live", {slots});
      t = {reshape(narrow(all.recent, 0, 0, 1), {slots}), draw, all.position};
    }
    const auto sampling = s.input("sampling", {slots, op::sample::numbers}, accum_of(s.machine->program()));
    all = sample(all, logits.logits(s, t), draw, sampling, input("key", {slots, op::sample::keys}), at);
    return contiguous(all.recent);
  }

 private:
  template <class M> using packed_rows = model::packed_tokens<M>;
};

}  // namespace isotope
