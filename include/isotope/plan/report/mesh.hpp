#pragma once
/// What the devices of a mesh exchange, in one line.
#include <string>

#include "../../op/all_reduce.hpp"
#include "../plan.hpp"

namespace isotope {

/// "mesh of data 2, tensor 2, zero 1; of the tensor group 51 collectives of 12345 bytes (f32), of the data group 24 of 678 bytes (f32)" for a whole step of one
/// micro-batch: the operands of collectives and their formats. Empty for one device.
inline std::string mesh_line(const plan_view& p) {
  if (p.totals.mesh.single()) return {};
  struct traffic {
    std::int64_t collectives = 0, bytes = 0;
    std::string formats;
  } of[2];
  for (const step& s : p.steps) {
    if (!s.op->collective) continue;
    traffic& t = of[std::size_t(op::collective_constants::of(s.attr).group)];
    const operand& x = p.operands[std::size_t(s.operands)];
    const std::string format(name_of(x.type));
    ++t.collectives;
    t.bytes += x.bytes;
    if (t.formats.find(format) == std::string::npos) t.formats += (t.formats.empty() ? "" : ", ") + format;
  }
  std::string r = "mesh of data " + std::to_string(p.totals.mesh.data) + ", tensor " + std::to_string(p.totals.mesh.tensor) +
                  (p.totals.shards_updates ? ", zero 1" : "");
  const char* names[2] = {"; of the tensor group ", "; of the data group "};
  for (int g = 0; g < 2; ++g)
    if (of[g].collectives > 0)
      r += names[g] + std::to_string(of[g].collectives) + " collectives of " + std::to_string(of[g].bytes) + " bytes (" + of[g].formats +
           ")";
  return r;
}

}  // namespace isotope
