#pragma once
/// Dropout of attention as the shaders see it: three constants, and where the step's seed and counter are. attention_dropout.glsl is its twin.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/attention.hpp>

namespace isotope::vulkan {

struct attention_dropout {
  bool on;
  std::uint32_t last;  // the largest word that drops its probability
  float factor;        // 1 / (1 - p), of those kept

  explicit attention_dropout(double p) : on(p > 0), last(on ? op::attention_shape::last_dropped(p) : 0), factor(float(1 / (1 - p))) {}
  void add_to(constants& c) const { c.add(on).add(last).add(factor); }
  /// The scalars are read where something is dropped.
  void add_reads(const launch& l, std::vector<range>& reads) const {
    if (on) reads.emplace_back(l.scalars, std::int64_t(sizeof(device_scalars)));
  }
};

}  // namespace isotope::vulkan
