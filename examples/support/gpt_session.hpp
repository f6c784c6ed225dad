#pragma once
/// A GPT of any size on the device that the program was compiled for, planned when the program runs: a text's vocabulary is known then.
#include "machine.hpp"

#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace support {

using target = isotope::selected;
using session = isotope::device<target>::session;

/// How a GPT is to be trained, as far as the plan depends on it.
struct training_shape {
  std::int64_t batch = 1, length = 1;
  bool accumulate = false;  // several micro-batches per step
};

/// Plans first, so that a model that does not fit is refused before anything is allocated or opened.
///
/// @param budget_bytes  0: the machine's memory
/// @error over_budget, invalid_model, and as the device reports
inline isotope::result<session> open_gpt(const isotope::model::gpt& size, const training_shape& shape,
                                         const isotope::device_options& options, std::int64_t budget_bytes) {
  const isotope::model::gpt_loss_of loss{size, int(shape.batch), int(shape.length)};
  const std::int64_t budget = budget_bytes > 0 ? budget_bytes : memory_bytes();
  auto plan = isotope::plan_training<target>(loss, {.accumulate = shape.accumulate}, budget);
  if (!plan) return std::move(plan).error();
  auto evaluation = isotope::plan_inference<target>(loss, budget);
  if (!evaluation) return std::move(evaluation).error();
  auto device = isotope::device<target>::open(options);
  if (!device) return std::move(device).error();
  return device->load(*std::move(plan), *std::move(evaluation));
}

/// Next-token logits of one window at a time.
class gpt_reader {
 public:
  /// @error as open_gpt
  static isotope::result<gpt_reader> open(const isotope::model::gpt& size, const isotope::device_options& options) {
    auto plan = isotope::plan_inference<target>(isotope::model::gpt_logits_of{size, 1, size.context}, memory_bytes());
    if (!plan) return std::move(plan).error();
    auto device = isotope::device<target>::open(options);
    if (!device) return std::move(device).error();
    auto loaded = device->load(*std::move(plan));
    if (!loaded) return std::move(loaded).error();
    return gpt_reader(*std::move(loaded), size);
  }

  auto parameters() const { return session_.parameters(); }
  isotope::result<void> write(isotope::tensor_kind kind, std::size_t slot, std::span<const float> in) {
    return session_.write(kind, slot, in);
  }

  /// Logits (V) after the last of 1 to `context` tokens. The tail of the window is filled up; a causal model's earlier rows do not see it.
  isotope::result<std::span<const float>> logits(std::span<const std::int32_t> tokens) {
    auto window = session_.input<std::int32_t>("tokens");
    if (!window) return std::move(window).error();
    std::fill(std::copy(tokens.begin(), tokens.end(), window->begin()), window->end(), 0);
    session_.run({}, isotope::phase_always);
    auto rows = session_.output<target::precision::storage>("output");  // (1,S,V)
    if (!rows) return std::move(rows).error();
    const auto row = rows->subspan((tokens.size() - 1) * logits_.size(), logits_.size());
    std::transform(row.begin(), row.end(), logits_.begin(), [](auto x) { return float(x); });
    return std::span<const float>(logits_);
  }

 private:
  gpt_reader(session loaded, const isotope::model::gpt& size) : session_(std::move(loaded)), logits_(std::size_t(size.vocab)) {}

  session session_;
  std::vector<float> logits_;
};

}  // namespace support
