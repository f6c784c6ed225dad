#pragma once
/// The cpu backend. It runs on every machine, and the other backends are checked against it.
#include <string_view>
#include <vector>

#include "../core/device.hpp"
#include "cpu/device.hpp"
#include "kernel_list.hpp"

#include <isotope/kernels/cpu/all.hpp>

namespace isotope::backend {

struct cpu {
  static constexpr std::string_view name = "cpu";
  static constexpr int preference = 0;
  using default_precision = precision::f32;
  static constexpr std::int64_t chunk_bytes = 0, tensor_bytes = 0, row_multiple = 1;
  /// Why the native kernel set falls back to the portable one.
  static constexpr std::string_view native_reason = isotope::cpu::native::reason;
  using options = device_options;
  using kernels = every_library_kernel<isotope::cpu::kernel, precision::f32, precision::bf16, precision::f64>;
  template <class T> using device = isotope::cpu::device<T>;
  /// The devices of this backend: one, the processor.
  static std::vector<device_info> devices() {
    return {{.name = "cpu", .backend = name, .kind = device_kind::cpu, .index = 0, .units = isotope::cpu::thread_pool::available_cpus()}};
  }
  static std::vector<code_variant> variants() { return {}; }
};
static_assert(Backend<cpu>);

}  // namespace isotope::backend

#include "cpu/compiled.hpp"  // names the standard targets, so it comes last
