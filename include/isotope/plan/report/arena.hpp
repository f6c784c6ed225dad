#pragma once
/// Where every tensor of a plan lies in the arena, and during which steps of the plan.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "to_text.hpp"

namespace isotope {

/// A rectangle of the arena: bytes [at, at + bytes) during steps [first, last] of the plan.
struct placed_tensor {
  std::string name;
  value_kind region = value_kind::temp;
  std::int64_t at = 0, bytes = 0;  // from the start of the arena
  std::int64_t first = 0, last = 0;
};

struct arena_map {
  std::int64_t bytes = 0, steps = 0;
  std::array<std::int64_t, value_kinds> start{}, region{};  // bytes
  std::vector<placed_tensor> tensors;
};

namespace arena_detail {

/// Which temporary was last written to each byte.
class temporaries {
 public:
  explicit temporaries(std::vector<placed_tensor>& all) : all_(all) {}

  void write(placed_tensor t) {
    const std::int64_t begin = t.at, end = t.at + t.bytes;
    std::vector<part> kept;
    for (const part& p : parts_) {
      if (p.begin < std::min(p.end, begin)) kept.push_back({p.begin, std::min(p.end, begin), p.tensor});
      if (std::max(p.begin, end) < p.end) kept.push_back({std::max(p.begin, end), p.end, p.tensor});
    }
    kept.push_back({begin, end, all_.size()});
    parts_ = std::move(kept);
    all_.push_back(std::move(t));
  }
  /// Whether a tensor was written there. Those that were are alive until step i.
  bool read(std::int64_t begin, std::int64_t bytes, std::int64_t i) {
    bool found = false;
    for (const part& p : parts_)
      if (p.begin < begin + bytes && begin < p.end) all_[p.tensor].last = i, found = true;
    return found;
  }

 private:
  struct part {
    std::int64_t begin, end;
    std::size_t tensor;
  };
  std::vector<part> parts_;
  std::vector<placed_tensor>& all_;
};

}  // namespace arena_detail

/// Maps the arena. A temporary lives from the step that writes it to the last that reads it; everything else during the whole plan. Temporaries have the name
/// of the step that writes them, parameters, gradients and moments that of the parameter. Regions whose tensors a plan does not list are one tensor.
inline arena_map arena_map_of(const plan_view& p) {
  arena_map m;
  m.region = p.totals.region, m.bytes = p.totals.bytes, m.steps = std::int64_t(p.steps.size());
  for (std::size_t k = 1; k < m.start.size(); ++k) m.start[k] = m.start[k - 1] + m.region[k - 1];
  const auto region_of = [&](value_kind k) { return m.region[std::size_t(k)]; };
  const auto start_of = [&](value_kind k) { return m.start[std::size_t(k)]; };
  const auto lasting = [&](std::string label, value_kind k, std::int64_t at, std::int64_t bytes) {
    if (at >= 0 && bytes > 0 && at + bytes <= region_of(k))
      m.tensors.push_back({std::move(label), k, start_of(k) + at, bytes, 0, std::max<std::int64_t>(m.steps - 1, 0)});
  };

  using enum value_kind;
  const std::int64_t wide = size_of(accum_of(p.totals.program)), grads = p.totals.trained > 0 ? region_of(grad) / p.totals.trained : 0;
  for (const auto& q : p.inputs) lasting(std::string(q.label.view()), q.where.region, q.where.at, q.where.bytes);
  for (const auto& q : p.outputs)
    if (q.where.region == output) lasting(std::string(q.label.view()), output, q.where.at, q.where.bytes);
  for (const auto& q : p.states) lasting(std::string(q.label.view()), q.where.region, q.where.at, q.where.bytes);
  for (const auto& s : p.slots) {
    const std::string path(s.path.view());
    const std::int64_t n = s.dims.count();
    lasting(path, param, s.at * size_of(s.type), n * size_of(s.type));
    if (s.grad >= 0) lasting("gradient of " + path, grad, s.grad * grads, n * grads);
    if (p.totals.shards_updates || !s.trained) continue;
    lasting("master of " + path, master, s.at * wide, n * wide);
    lasting("first moment of " + path, moment, s.at * wide, n * wide);
    lasting("second moment of " + path, moment, s.moment2 * wide, s.moment2 < 0 ? 0 : n * wide);
  }
  lasting("packed weights", packed, 0, region_of(packed));
  if (p.totals.shards_updates)
    lasting("masters of this rank", master, 0, region_of(master)), lasting("moments of this rank", moment, 0, region_of(moment));

  arena_detail::temporaries temporaries(m.tensors);
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const step& s = p.steps[i];
    const auto now = std::int64_t(i);
    const std::string writer = (s.block < 0 ? "" : "block " + std::to_string(s.block) + ": ") + step_to_text(p, i);
    for (int k = 0; k < s.inputs + s.outputs; ++k) {
      const operand& o = p.operands[std::size_t(s.operands + k)];
      if (o.region != temp || o.bytes == 0) continue;
      const std::int64_t at = start_of(temp) + o.at;
      const bool adds = k >= s.inputs && (s.added(phase_always) >> (k - s.inputs) & 1) != 0;
      if ((k < s.inputs || adds) && (temporaries.read(at, o.bytes, now) || k < s.inputs)) continue;
      temporaries.write({writer + " " + to_text(o.dims) + " " + std::string(name_of(o.type)), temp, at, o.bytes, now, now});
    }
    if (s.scratch >= 0 && s.scratch_bytes > 0)
      temporaries.write({"scratch of " + writer, temp, start_of(temp) + s.scratch, s.scratch_bytes, now, now});
  }
  return m;
}

}  // namespace isotope
