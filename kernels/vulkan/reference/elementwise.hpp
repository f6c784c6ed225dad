#pragma once
/// A step that is only a fused body, interpreted.
#include <isotope/kernels/vulkan/body/body.hpp>
#include <isotope/kernels/vulkan/portable/elementwise.hpp>
#include <isotope/op/elementwise.hpp>
#include <isotope/shaders/reference_elementwise_few.hpp>
#include <isotope/shaders/reference_elementwise_many.hpp>
#include <isotope/shaders/reference_elementwise_one.hpp>

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::elementwise, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0xff;
  static void record(const launch& l, recording& r) {
    const std::int64_t n = l.out[0].dims.count();
    if (n == 0) return;
    for (const micro_op& m : l.body)
      if (instruction_number(m.op) < 0) {
        enter_set(r, kernels::portable::name, "the interpreter does not know an op of the body");
        return kernel<op::elementwise, P, kernels::portable>::record(l, r);
      }
    const fused_body body(l);
    constants c{64, l.device->subgroup};
    body.add_to(c, false);
    std::vector<range> reads, writes;
    body.add_ranges(reads, writes);
    const struct {
      std::uint64_t body;
      std::uint32_t elements;
      std::uint32_t padding = 0;
    } push{body.table(r), std::uint32_t(n)};
    const shader& code = l.body.size() <= 1   ? shaders::reference_elementwise_one
                         : l.body.size() <= 4 ? shaders::reference_elementwise_few
                                              : shaders::reference_elementwise_many;
    r.add(code, c, push, per_invocation(n, 64), reads, writes);
  }
};

}  // namespace isotope::vulkan
