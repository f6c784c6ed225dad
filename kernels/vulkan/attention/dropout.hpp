#pragma once
/// The dropout of attention as shaders see it: three constants, and the address of the step's seed and counter. attention/dropout.glsl mirrors it.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/attention.hpp>

namespace isotope::vulkan {

struct attention_dropout {
  bool on;
  std::uint32_t last;  // a random word up to this one drops its probability
  float factor;        // 1 / (1 - p): scales the kept probabilities

  explicit attention_dropout(double p) : on(p > 0), last(on ? op::attention_shape::last_dropped(p) : 0), factor(float(1 / (1 - p))) {}
  void add_to(constants& c) const { c.add(on).add(last).add(factor); }
  /// Adds the scalars to what is read, if anything is dropped.
  void add_reads(const launch& l, std::vector<range>& reads) const {
    if (on) reads.emplace_back(l.scalars, std::int64_t(sizeof(device_scalars)));
  }
};

}  // namespace isotope::vulkan
