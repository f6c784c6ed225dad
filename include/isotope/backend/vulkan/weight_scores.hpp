#pragma once
/// The oscillation of each weight that a program stores in f16, by which matmuls choose their kernel. It is computed when a weight is written, on the host:
/// the values are there, and so is the choice, which would otherwise have to wait for the device.
#include <cstdint>
#include <span>
#include <vector>

#include "../../op/matmul.hpp"
#include "../../plan/plan.hpp"
#include "../oscillation.hpp"

namespace isotope::vulkan {

class weight_scores {
 public:
  /// Adds every weight that a matmul of the plan reads in f16, with f32 activations.
  void add(const plan_view& p) {
    for (const auto& s : p.steps) {
      if (s.op != &info<op::matmul> || !op::matmul::constants::of(s.attr).half_weight) continue;
      const operand& w = p.operands[std::size_t(s.operands + 1)];
      if (w.region != value_kind::param || w.dims.rank != 2 || find(w.at, w.strides[0]) != nullptr) continue;
      all_.push_back({w.at, w.strides[0], {w.dims[1], w.dims[0], w.strides[1], w.strides[0]}, -1});
    }
  }
  /// Computes the oscillation of a weight that is being written. Returns whether some matmul must choose its kernel again, because the oscillation has
  /// crossed the threshold.
  bool put(const slot& s, std::span<const float> x, double threshold) {
    bool changed = false;
    for (auto& e : all_) {
      if (e.at != s.at * size_of(s.type)) continue;
      const double before = e.score;
      e.score = oscillation(x, e.lines);
      changed = changed || (before > threshold) != (e.score > threshold);
    }
    return changed;
  }
  /// The oscillation of a matmul's right operand; -1: not known.
  float of(const operand& w) const {
    const entry* e = w.region == value_kind::param && w.dims.rank == 2 ? find(w.at, w.strides[0]) : nullptr;
    return e == nullptr ? -1.0f : float(e->score);
  }

 private:
  struct entry {
    // `at` is a byte offset in the parameter region. A weight that is read in both memory orders has two entries, which differ in k_stride.
    std::int64_t at = 0, k_stride = 0;
    weight_lines lines;
    double score = -1;  // not written yet
  };
  std::vector<entry> all_;

  const entry* find(std::int64_t at, std::int64_t k_stride) const {
    for (const auto& e : all_)
      if (e.at == at && e.k_stride == k_stride) return &e;
    return nullptr;
  }
};

}  // namespace isotope::vulkan
