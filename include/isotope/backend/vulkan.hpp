#pragma once
/// The vulkan backend: any GPU with Vulkan 1.3. The loader library is opened at run time, so programs also start on machines without it.
#include <boost/mp11/list.hpp>
#include <string_view>
#include <vector>

#include "../core/device.hpp"
#include "vulkan/device.hpp"
#include "vulkan/tensor_limit.hpp"

#include <isotope/kernels/vulkan/all.hpp>
#include <isotope/kernels/vulkan/reference/all.hpp>

namespace isotope::backend {

struct vulkan {
  static constexpr std::string_view name = "vulkan";
  static constexpr int preference = 1;
  using default_precision = precision::f32;
  static constexpr std::int64_t tensor_bytes = isotope::vulkan::tensor_bytes;
  /// Logits are padded to rows of a multiple of this many elements. Rows of 50257 elements start at odd addresses: on an H200 matmuls with them ran at 0.6 of
  /// the speed of matmuls with rows of 50304.
  static constexpr std::int64_t row_multiple = 64;
  static constexpr std::int64_t chunk_bytes = 0;  // no limit on one buffer, which may span several allocations
  /// The planner's reason where an op has no native kernel. A native kernel that falls back on some device gives its own reason when it is recorded.
  static constexpr std::string_view native_reason = "needs no matrix units: portable is the fastest there is";
  /// The kernels of a precision that accumulates in f32.
  template <class P>
  using kernels_of = boost::mp11::mp_append<isotope::vulkan::native_kernels<P>, isotope::vulkan::portable_kernels<P>,
                                            isotope::vulkan::reference_kernels<P>>;
  using kernels = boost::mp11::mp_append<kernels_of<precision::f32>, kernels_of<precision::bf16>>;
  template <class T> using device = isotope::vulkan::device<T>;
  /// Every device that the Vulkan loader enumerates, the fastest kind first; empty without a loader.
  static std::vector<device_info> devices() {
    std::vector<device_info> all;
    auto i = isotope::vulkan::instance::open({});
    if (!i) return all;
    for (const auto& p : (*i)->devices()) all.push_back(isotope::vulkan::describe(p, int(all.size())));
    return all;
  }
#if defined(ISOTOPE_COMPILED_SHADERS)
  /// Every variant of every shader that the program links.
  static std::span<const isotope::vulkan::shader_variant> variants() { return isotope::vulkan::shader_variants(); }
#endif
};
static_assert(Backend<vulkan>);

}  // namespace isotope::backend

#include "vulkan/compiled.hpp"  // names the standard targets, so it comes last
