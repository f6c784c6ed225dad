#pragma once
/// The model that a program trains: a decoder of any family, whose linear layers may have adapters. It is one type, so that the planner is
/// compiled once.
#include <isotope/interop/decoder_folder.hpp>
#include <isotope/nn/lora.hpp>

#include <cstdint>
#include <variant>

namespace support {

using isotope::interop::decoder_size;

struct trained_model {
  decoder_size size;
  isotope::nn::lora adapters;  // rank 0: none, and all weights are trained

  bool adapted() const { return adapters.rank > 0; }
  /// Numbers of the model, without those of adapters.
  std::int64_t parameters() const {
    return std::visit([](const auto& g) { return parameter_count(g); }, size);
  }
};

/// Its loss of inputs `tokens` and `targets` (batch, length).
struct trained_loss {
  trained_model model;
  int batch = 1, length = 1;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using isotope::model::gpt, isotope::model::gpt_loss_of, isotope::model::llama, isotope::model::llama_loss_of;
    s = model.adapters.within(s);
    if (const auto* g = std::get_if<gpt>(&model.size)) return gpt_loss_of{*g, batch, length}(s);
    return llama_loss_of{*std::get_if<llama>(&model.size), batch, length}(s);
  }
};

}  // namespace support
