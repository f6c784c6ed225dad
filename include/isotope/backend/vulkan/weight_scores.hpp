#pragma once
/// The oscillation of the weights that a program stores in f16, computed once when a weight is written: gemms choose their kernel by it.
/// It is computed on the host: a weight is written from there, so its numbers are at hand, and the choice is made there, so a score of the device
/// would have to be waited for.
#include <cstdint>
#include <span>
#include <vector>

#include "../../op/matmul.hpp"
#include "../../plan/plan.hpp"
#include "../oscillation.hpp"

namespace isotope::vulkan {

class weight_scores {
 public:
  /// Takes note of every weight that a gemm of the plan reads in f16 beside activations of f32.
  void add(const plan_view& p) {
    for (const auto& s : p.steps) {
      if (s.op != &info<op::matmul> || !op::matmul::constants::of(s.attr).half_weight) continue;
      const operand& w = p.operands[std::size_t(s.operands + 1)];
      if (w.region != value_kind::param || w.dims.rank != 2 || find(w.at, w.strides[0]) != nullptr) continue;
      all_.push_back({w.at, w.strides[0], {w.dims[1], w.dims[0], w.strides[1], w.strides[0]}, -1});
    }
  }
  /// Scores a weight as it is written. Whether some gemm belongs on the other side of the threshold.
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
  /// The score of the right operand of a gemm; -1: it has none.
  float of(const operand& w) const {
    const entry* e = w.region == value_kind::param && w.dims.rank == 2 ? find(w.at, w.strides[0]) : nullptr;
    return e == nullptr ? -1.0f : float(e->score);
  }

 private:
  struct entry {
    std::int64_t at = 0, k_stride = 0;  // of the parameter region, bytes; a weight may be read in both memory orders
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
