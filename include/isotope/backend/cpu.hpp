#pragma once
/// The cpu backend. It runs on every machine, and the other backends are checked against it.
#include <boost/mp11/list.hpp>
#include <string_view>
#include <vector>

#include "../core/device.hpp"
#include "cpu/device.hpp"

#include <isotope/kernels/cpu/all.hpp>
#include <isotope/kernels/cpu/native/all.hpp>
#include <isotope/kernels/cpu/reference/all.hpp>

namespace isotope::backend {

struct cpu {
  static constexpr std::string_view name = "cpu";
  static constexpr int preference = 0;
  using default_precision = precision::f32;
  static constexpr std::int64_t chunk_bytes = 0;
  /// Why the native kernel set falls back to the portable one.
  static constexpr std::string_view native_reason = isotope::cpu::native::reason;
  using kernels = boost::mp11::mp_append<isotope::cpu::native_kernels<precision::f32>, isotope::cpu::native_kernels<precision::bf16>,
                                         isotope::cpu::portable_kernels<precision::f32>, isotope::cpu::portable_kernels<precision::bf16>,
                                         isotope::cpu::reference_kernels<precision::f32>, isotope::cpu::reference_kernels<precision::bf16>,
                                         isotope::cpu::reference_kernels<precision::f64>>;
  template <class T> using device = isotope::cpu::device<T>;
  /// The devices of this backend: one, the processor.
  static std::vector<device_info> devices() {
    return {{.name = "cpu", .backend = name, .kind = device_kind::cpu, .index = 0, .units = isotope::cpu::thread_pool::available_cpus()}};
  }
};
static_assert(Backend<cpu>);

}  // namespace isotope::backend

#include "cpu/compiled.hpp"  // names the standard targets, so it comes last
