#pragma once
/// The host side of body.glsl: specialization constants, table of addresses and ranges of a fused body.
///
///   const fused_body body(l, own);   // own: operands of the host, which come first in l.in; a launch without a body makes BODY_COUNT 0
///   body.add_to(constants);          // after the kernel's own constants, BODY_FIRST_ID of them
///   push.body = body.table(r);       // 0 without a body
///   body.add_ranges(reads, writes);  // of its operands and of all outputs
#include <isotope/backend/vulkan/body_form.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>

namespace isotope::vulkan {

class fused_body {
 public:
  /// The number of constants that body.glsl declares.
  static constexpr int constant_count = 92;

  explicit fused_body(const launch& l, int own = 0) : l_(l), form_(form_of<view>(l.in, l.out, l.body, l.accumulate, own)) {}

  bool empty() const { return form_.instructions == 0; }
  const body_form& form() const { return form_; }

  /// Equal code has equal constants: constants that the shader does not read are 0. `quads`: the shader can process four elements at a time.
  void add_to(constants& c, bool quads = true) const {
    const body_form& f = form_;
    if (empty()) {
      for (int k = 0; k < constant_count; ++k) c.add(0u);
      return;
    }
    std::uint32_t in_types = 0, out_types = 0, lie = f.wide ? 1u << 16 : 0u;
    for (int k = 0; k < f.inputs; ++k) {
      if (!f.read(k)) continue;
      const auto q = f.quads[std::size_t(k)];
      in_types |= std::uint32_t(f.in[std::size_t(k)]) << (4 * k);
      lie |= q == quad::contiguous ? 1u << k : q == quad::broadcast ? 256u << k : 0u;
    }
    for (int k = 0; k < f.outputs; ++k) out_types |= std::uint32_t(f.out[std::size_t(k)]) << (4 * k);
    c.add(f.instructions).add(f.reads).add(in_types).add(out_types).add(std::uint32_t(f.outputs) | std::uint32_t(f.accumulate) << 8);
    c.add(quads && f.wide ? lie : 0u).add(f.rank);
    for (int i = 0; i + 1 < max_rank; ++i) c.add(i + 1 < f.rank ? f.dims[std::size_t(i)] : 0);
    for (const auto& s : f.strides)
      for (const auto x : s) c.add(x);
    for (const micro_op& m : f.body) {
      c.add(m.op == nullptr ? 0u : word_of(m));
      c.add(float(m.scalar));
    }
  }
  /// Returns the device address of a table with the addresses of 8 operands, then of the outputs.
  std::uint64_t table(recording& r) const {
    if (empty()) return 0;
    std::array<std::uint64_t, max_inputs + max_outputs> at{};
    for (std::size_t k = 0; k < l_.in.size(); ++k) at[k] = l_.in[k].at;
    for (std::size_t k = 0; k < l_.out.size(); ++k) at[max_inputs + k] = l_.out[k].at;
    return r.keep(std::span<const std::uint64_t>(at));
  }
  void add_ranges(std::vector<range>& reads, std::vector<range>& writes) const {
    for (int k = 0; k < form_.inputs; ++k)
      if (form_.read(k)) reads.push_back(l_.in[std::size_t(k)]);
    for (int k = 0; k < form_.outputs; ++k) {
      writes.push_back(l_.out[std::size_t(k)]);
      if (form_.adds(k)) reads.push_back(l_.out[std::size_t(k)]);
    }
  }

 private:
  /// Encodes an instruction as body.glsl decodes it. Values are numbered: operands 0 to 7, results from 8 on, 24 the host's result or nothing.
  static std::uint32_t word_of(const micro_op& m) {
    std::uint32_t w = instruction_code(m.op, m.type) | std::uint32_t(m.type) << 8 | std::uint32_t(m.store + 1) << 12;
    for (int k = 0; k < 3; ++k) {
      const auto a = m.arg[std::size_t(k)];
      w |= std::uint32_t(a < 0 ? 24 : a) << (15 + 5 * k);
    }
    return w;
  }
  const launch& l_;
  body_form form_;
};

}  // namespace isotope::vulkan
