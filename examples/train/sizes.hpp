#pragma once
/// The library's named sizes, each with suitable training settings.
#include "settings.hpp"

#include <isotope/config/load.hpp>
#include <isotope/isotope.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace train_program {

inline constexpr std::string_view default_size = "char-gpt-cpu";

/// Learning rates and the last warm-up are those published with GPT-2's reproductions and nanoGPT's character model.
inline settings settings_of(std::string_view name, const isotope::model::gpt& g) {
  settings s;
  s.model = {g.layers, g.heads, g.width, g.context, g.dropout};
  training_settings& t = s.training;  // the defaults are those of char-gpt-cpu
  t.length = g.context;
  if (name.starts_with("gpt2-")) {
    t.steps = 20000, t.batch = 4, t.warmup = 700, t.beta2 = 0.95;
    t.learning_rate = g.layers <= 12 ? 6e-4 : g.layers <= 24 ? 3e-4 : g.layers <= 36 ? 2.5e-4 : 2e-4;
    t.min_learning_rate = t.learning_rate / 10;
    s.input.data = "tokens";
    s.input.vocab = g.vocab;
  } else if (name == "char-gpt") {
    t.steps = 5000, t.batch = 64;
  } else if (name == "debug-tiny") {
    t.steps = 200, t.batch = 4, t.warmup = 10, t.eval_every = 50;
    t.learning_rate = 3e-3, t.min_learning_rate = 3e-4;
  }
  return s;
}

inline std::vector<isotope::config::named_size<settings>> named_sizes() {
  std::vector<isotope::config::named_size<settings>> out;
  for (const auto& [name, size] : isotope::model::gpt_sizes) out.push_back({std::string(name), settings_of(name, size)});
  return out;
}

}  // namespace train_program
