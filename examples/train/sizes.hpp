#pragma once
/// The named sizes, each with the training that suits it.
#include "settings.hpp"

#include <isotope/config/load.hpp>

#include <vector>

namespace train_program {

inline constexpr const char* default_size = "char-gpt-cpu";

inline std::vector<isotope::config::named_size<settings>> named_sizes() {
  const auto size = [](const char* name, model_settings model, training_settings training) {
    settings s;
    s.model = model;
    s.training = training;
    s.input.data = model.context == 1024 ? "tokens" : "char";
    s.input.vocab = model.context == 1024 ? 50257 : 0;
    return isotope::config::named_size<settings>{name, s};
  };
  const auto gpt2 = [&](const char* name, std::int32_t layers, std::int32_t heads, std::int32_t width, double rate) {
    training_settings t;
    t.steps = 20000, t.batch = 4, t.length = 1024, t.accumulate = 1;
    t.learning_rate = rate, t.min_learning_rate = rate / 10, t.warmup = 700;
    t.beta2 = 0.95;
    t.eval_every = 250;
    return size(name, {layers, heads, width, 1024, 0}, t);
  };
  training_settings cpu;  // the defaults of the struct
  training_settings gpu;
  gpu.steps = 5000, gpu.batch = 64, gpu.length = 256;
  training_settings tiny;
  tiny.steps = 200, tiny.batch = 4, tiny.length = 32, tiny.warmup = 10, tiny.eval_every = 50;
  tiny.learning_rate = 3e-3, tiny.min_learning_rate = 3e-4;
  return {gpt2("gpt2-124m", 12, 12, 768, 6e-4),         gpt2("gpt2-355m", 24, 16, 1024, 3e-4),
          gpt2("gpt2-774m", 36, 20, 1280, 2.5e-4),      gpt2("gpt2-1558m", 48, 25, 1600, 2e-4),
          size("char-gpt", {6, 6, 384, 256, 0.2}, gpu), size("char-gpt-cpu", {4, 4, 128, 64, 0}, cpu),
          size("debug-tiny", {2, 2, 32, 32, 0}, tiny)};
}

}  // namespace train_program
