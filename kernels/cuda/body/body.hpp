#pragma once
/// The host side of device/body.cuh: the arguments and ranges of a fused body.
///
///   const fused_body body(l, own);      // own: operands of the kernel, which come first in l.in
///   arguments.body = body.arguments();  // count is 0 without a body
///   body.add_ranges(reads, writes);     // of its operands and of all outputs
///   device code: if (a.body.count == 0) store(...); else body_run(a.body, element, product);
#include <isotope/kernels/cuda/device/body.h>
#include <isotope/backend/cuda/body_form.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>

namespace isotope::cuda {

static_assert(gpu::body_inputs == max_inputs && gpu::body_outputs == max_outputs && gpu::body_instructions == max_micro_ops);
static_assert(gpu::max_axes == max_rank && gpu::no_value == max_inputs + max_micro_ops);

class fused_body {
 public:
  explicit fused_body(const launch& l, int own = 0) : l_(l), form_(form_of<view>(l.in, l.out, l.body, l.accumulate, own)) {}

  bool empty() const { return form_.instructions == 0; }
  const body_form& form() const { return form_; }
  /// Whether the interpreter knows every instruction: it does not know ops that are not in instruction_ops.
  bool known() const {
    for (int j = 0; j < form_.instructions; ++j)
      if (instruction_number(form_.body[std::size_t(j)].op) < 0) return false;
    return true;
  }

  gpu::body arguments() const {
    const body_form& f = form_;
    gpu::body b{};
    if (empty()) return b;
    b.count = f.instructions;
    b.inputs = f.inputs;
    b.outputs = f.outputs;
    b.rank = f.rank;
    b.reads = f.reads;
    b.accumulate = f.accumulate;
    for (std::size_t i = 0; i < std::size_t(max_rank); ++i) b.dims[i] = f.dims[i];
    for (std::size_t k = 0; k < l_.in.size(); ++k) {
      if (!f.read(int(k))) continue;
      b.in[k].at = l_.in[k].at;
      b.in[k].type = std::int32_t(f.in[k]);
      for (std::size_t i = 0; i < std::size_t(max_rank); ++i) b.in[k].strides[i] = f.strides[k][i];
    }
    for (std::size_t k = 0; k < l_.out.size(); ++k) b.out[k] = {l_.out[k].at, std::int32_t(f.out[k])};
    for (std::size_t j = 0; j < std::size_t(f.instructions); ++j) {
      const micro_op& m = f.body[j];
      gpu::instruction& i = b.instructions[j];
      i.code = std::uint8_t(instruction_code(m.op, m.type));
      i.type = std::uint8_t(m.type);
      i.store = m.store;
      for (std::size_t k = 0; k < 3; ++k) i.argument[k] = m.arg[k] < 0 ? gpu::no_value : m.arg[k];
      i.constant = float(m.scalar);
    }
    return b;
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
  const launch& l_;
  body_form form_;
};

}  // namespace isotope::cuda
