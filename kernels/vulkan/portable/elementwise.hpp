#pragma once
/// A step that is only a fused body: each form has a module of its own. Bound by bytes.
///
/// An invocation takes one vector of four elements: grid-stride loops over fewer workgroups lost 7 % of the bandwidth of a copy on an H200.
#include <string>

#include <isotope/kernels/vulkan/body/emitted_body.hpp>
#include <isotope/op/elementwise.hpp>

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::elementwise, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 0xff;
  static void record(const launch& l, recording& r) {
    const std::int64_t n = l.out[0].dims.count();
    if (n == 0) return;
    const body_form form = form_of<view>(l.in, l.out, l.body, l.accumulate);
    emitted_push push;
    std::vector<range> reads, writes;
    for (std::size_t k = 0; k < l.in.size(); ++k)
      if (form.read(int(k))) {
        push.at[k] = l.in[k].at;
        reads.push_back(l.in[k]);
      }
    for (std::size_t k = 0; k < l.out.size(); ++k) {
      push.at[max_inputs + k] = l.out[k].at;
      writes.push_back(l.out[k]);
      if (form.adds(int(k))) reads.push_back(l.out[k]);
    }
    const std::int64_t invocations = form.wide ? n / 4 : n;
    push.invocations = std::uint32_t(invocations);
    const std::uint32_t group = l.device->invocations < 256 ? 64 : 256;
    r.add(*r.keep_module(name_of(form), spirv::emit_body(form, l.custom)), constants{group}, push, per_invocation(invocations, group),
          reads, writes);
  }

 private:
  /// Names what the body does, for reports: add+gelu_tanh.
  static std::string name_of(const body_form& f) {
    std::string s;
    for (int j = 0; j < f.instructions; ++j) {
      if (j > 0) s += '+';
      s += f.body[std::size_t(j)].op->name;
    }
    return s;
  }
};

}  // namespace isotope::vulkan
