#pragma once
/// The vulkan backend: any GPU with Vulkan 1.3. The loader library is opened at run time, so programs also start on machines without it.
#include <string_view>
#include <vector>

#include "../core/device.hpp"
#include "kernel_list.hpp"
#include "vulkan/device.hpp"
#include "vulkan/tensor_limit.hpp"

#include <isotope/kernels/vulkan/all.hpp>

namespace isotope::backend {

struct vulkan {
  static constexpr std::string_view name = "vulkan", short_name = "vk";
  static constexpr int preference = 1;
  using default_precision = precision::f32;
  static constexpr std::int64_t tensor_bytes = isotope::vulkan::tensor_bytes;
  /// Logits are padded to rows of a multiple of this many elements. Rows of 50257 elements start at odd addresses: on an H200 matmuls with them ran at 0.6 of
  /// the speed of matmuls with rows of 50304.
  static constexpr std::int64_t row_multiple = 64;
  static constexpr std::int64_t chunk_bytes = 0;  // no limit on one buffer, which may span several allocations
  /// The planner's reason where an op has no native kernel. A native kernel that falls back on some device gives its own reason when it is recorded.
  static constexpr std::string_view native_reason = "needs no matrix units: portable is the fastest there is";
  /// The kernels of precisions that accumulate in f32.
  template <class... P> using kernels_of = every_library_kernel<isotope::vulkan::kernel, P...>;
  using options = isotope::vulkan::options;
  using kernels = kernels_of<precision::f32, precision::bf16>;
  template <class T> using device = isotope::vulkan::device<T>;
  /// Every device that the Vulkan loader enumerates, the fastest kind first; empty without a loader.
  static std::vector<device_info> devices() {
    std::vector<device_info> all;
    auto i = isotope::vulkan::instance::open({});
    if (!i) return all;
    for (const auto& p : (*i)->devices()) all.push_back(isotope::vulkan::describe(p, int(all.size())));
    return all;
  }
  /// Every variant of every shader that the program links.
  static std::vector<code_variant> variants() {
    std::vector<code_variant> all;
#if defined(ISOTOPE_COMPILED_SHADERS)
    for (const auto& v : isotope::vulkan::shader_variants())
      all.push_back({v.is->name, v.source, v.flags, v.is->needs, v.is->missing, v.is->words.size_bytes()});
#endif
    return all;
  }
};
static_assert(Backend<vulkan>);

}  // namespace isotope::backend

#include "vulkan/compiled.hpp"  // names the standard targets, so it comes last
