#pragma once
/// The perplexity of a decoder on a text: e to the mean cross-entropy, in nats, of each token given those before it in its window.
#include <isotope/core/device.hpp>
#include <isotope/core/tensor_kind.hpp>
#include <isotope/generate/decoder_model.hpp>
#include <isotope/interop/decoder_folder.hpp>
#include <isotope/model/decoder.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace isotope {

struct perplexity_options {
  int window = 1024;                               // tokens that are read together, at most the context; windows do not overlap
  std::int64_t budget = 0;                         // bytes; 0: no limit
  bool decompose_all = false;                      // as the parameter of plan_inference
  weight_storage stored = nullptr;                 // likewise
  bool a8 = false;                                 // likewise
  const interop::lora_folder* adapters = nullptr;  // added to the weights
};

struct perplexity {
  double nats = 0;          // the mean over `tokens`
  std::int64_t tokens = 0;  // that were predicted: all but the first one
  int window = 0;
  double value() const { return std::exp(nats); }
};

/// Measures exp(-1/n sum_i log p(t_i | the tokens before it in its window)) of a decoder of a folder on these tokens.
/// @error invalid_argument: fewer than two tokens, a window below 1; as plan_inference, load_decoder and the device report
template <Target T>
result<perplexity> measure_perplexity(const device<T>& on, const io::model_folder& folder, const interop::decoder_config& config,
                                      std::span<const std::int32_t> tokens, const perplexity_options& o = {}) {
  if (tokens.size() < 2)
    return fail(errc::invalid_argument, "has " + std::to_string(tokens.size()) + " tokens", "the text", "give at least two");
  if (o.window < 1) return fail(errc::invalid_argument, "is not positive", "perplexity_options::window", "give 1 or more");
  perplexity p;
  auto plan = std::visit(
      [&](const auto& c) {
        const auto size = interop::inference_size(c);
        p.window = int(std::min<std::int64_t>({o.window, size.context, std::int64_t(tokens.size()) - 1}));
        return plan_inference<T>(model::decoder_loss<std::remove_const_t<decltype(size)>>{size, 1, p.window}, o.budget, true,
                                 o.decompose_all, o.stored, nullptr, false, o.a8);
      },
      config);
  if (!plan) return std::move(plan).error();
  auto session = on.load(*std::move(plan));
  if (!session) return std::move(session).error();
  if (auto r = interop::load_decoder(*session, folder, config, o.adapters); !r) return r.error();
  const auto window = std::size_t(p.window);
  std::vector<std::int32_t> ids(window), targets(window);
  for (std::size_t at = 0; at + 1 < tokens.size(); at += window) {
    const std::size_t some = std::min(window, tokens.size() - 1 - at);
    std::fill(ids.begin(), ids.end(), 0);
    std::fill(targets.begin(), targets.end(), -1);  // rows that do not count
    std::copy_n(tokens.begin() + std::ptrdiff_t(at), some, ids.begin());
    std::copy_n(tokens.begin() + std::ptrdiff_t(at) + 1, some, targets.begin());
    for (const auto& [input, from] : {std::pair("tokens", &ids), std::pair("targets", &targets)})
      if (auto r = session->template set<std::int32_t>(input, *from); !r) return r.error();
    session->run({}, phase_always);
    if (auto r = session->status(); !r) return r.error();
    const auto mean = session->template output<typename T::precision::accum>("output");
    if (!mean) return mean.error();
    p.nats += double((*mean)[0]) * double(some);
    p.tokens += std::int64_t(some);
  }
  p.nats /= double(p.tokens);
  return p;
}

}  // namespace isotope
