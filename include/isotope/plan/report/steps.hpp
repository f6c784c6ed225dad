#pragma once
/// Prints a plan as its executor runs it: every step with the place of each operand. One tab-separated line per step, operand and port.
#include <string>

#include "../pass.hpp"
#include "to_text.hpp"

namespace isotope {

/// Lines `step`: index, op, fused body, phases, part of the training step, block (-: none), scratch offset in `temp` and bytes (-: none).
/// Lines `in`, `out` below it: index of the step, number, shape, format, region, byte offset in the arena, bytes from the first element to
/// the last. Lines `region`: name, byte offset in the arena, bytes. Lines `port`: input or output, name, shape, format, offset in the arena.
///
/// Regions follow one another as the lines say; a backend may hold `input` and `output` in separate memory.
inline std::string step_list(const plan_view& p) {
  std::string r = "# region\tname\toffset\tbytes\n";
  std::array<std::int64_t, value_kinds> start{};
  std::int64_t at = 0;
  for (int k = 0; k < value_kinds; ++k) {
    start[std::size_t(k)] = at;
    const auto bytes = p.totals.region[std::size_t(k)];
    r += "region\t" + std::string(to_text(value_kind(k))) + '\t' + std::to_string(at) + '\t' + std::to_string(bytes) + '\n';
    at += bytes;
  }
  const auto arena_offset = [&](const operand& o) { return std::to_string(start[std::size_t(o.region)] + o.at); };
  const auto tensor = [&](const operand& o) { return to_text(o.dims) + '\t' + std::string(name_of(o.type)); };
  for (const auto& q : p.inputs)
    r += "port\tinput\t" + std::string(q.label.view()) + '\t' + tensor(q.where) + '\t' + arena_offset(q.where) + '\n';
  for (const auto& q : p.outputs)
    r += "port\toutput\t" + std::string(q.label.view()) + '\t' + tensor(q.where) + '\t' + arena_offset(q.where) + '\n';
  const auto parts = passes_of(p);
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const step& s = p.steps[i];
    const std::string index = std::to_string(i);
    r += "step\t" + index + '\t' + std::string(s.op->name) + '\t' + body_to_text(p, s) + '\t' + std::string(phases_to_text(s.phases)) +
         '\t' + std::string(name_of(parts[i])) + '\t' + (s.block < 0 ? "-" : std::to_string(s.block)) + '\t' +
         (s.scratch < 0 ? "-\t-"
                        : std::to_string(start[std::size_t(value_kind::temp)] + s.scratch) + '\t' + std::to_string(s.scratch_bytes)) +
         '\n';
    for (int k = 0; k < s.inputs + s.outputs; ++k) {
      const operand& o = p.operands[std::size_t(s.operands + k)];
      r += (k < s.inputs ? "in\t" + index + '\t' + std::to_string(k) : "out\t" + index + '\t' + std::to_string(k - s.inputs)) + '\t' +
           tensor(o) + '\t' + std::string(to_text(o.region)) + '\t' + arena_offset(o) + '\t' + std::to_string(o.bytes) + '\n';
    }
  }
  return r;
}

}  // namespace isotope
