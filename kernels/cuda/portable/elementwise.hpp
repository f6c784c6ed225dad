#pragma once
/// A step that is only a fused body: each form has a kernel of its own. Bound by bytes.
#include <string>

#include <isotope/kernels/cuda/body/body.hpp>
#include <isotope/kernels/cuda/body/emitted_body.hpp>
#include <isotope/op/elementwise.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::elementwise, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 0xff;
  static void record(const launch& l, recording& r) {
    const std::int64_t n = l.out[0].dims.count();
    if (n == 0) return;
    const fused_body body(l);
    if (l.device->switches.no_generated_code && body.known()) {
      enter_set(r, kernels::reference::name, "no code is generated");
      return kernel<op::elementwise, P, kernels::reference>::record(l, r);
    }
    std::vector<range> reads, writes;
    body.add_ranges(reads, writes);
    const emitted_body code = ptx::emit_body(body.form(), l.custom);
    emitted_arguments a;
    for (std::size_t k = 0; k < l.in.size(); ++k) a.at[k] = l.in[k].at;
    for (std::size_t k = 0; k < l.out.size(); ++k) a.at[max_inputs + k] = l.out[k].at;
    a.threads = n / code.width;
    r.add(*r.keep_code(name_of(body.form()), std::string(code.ptx.begin(), code.ptx.end())), "elementwise", a, per_item(a.threads),
          std::move(reads), std::move(writes));
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

}  // namespace isotope::cuda
