#pragma once
/// Recorders that are compiled once. Where ISOTOPE_COMPILED_VULKAN_F32 or _BF16 is defined, programs link them from a library built from
/// kernels/vulkan/compiled/.
#include "table.hpp"

namespace isotope::vulkan {
#if defined(ISOTOPE_COMPILED_VULKAN_F32)
extern template std::span<const record_function> code_of<target<backend::vulkan, precision::f32, kernels::native>>();
extern template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::f32, kernels::native>>();
extern template std::span<const record_function> code_of<target<backend::vulkan, precision::f32, kernels::portable>>();
extern template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::f32, kernels::portable>>();
extern template std::span<const record_function> code_of<target<backend::vulkan, precision::f32, kernels::reference>>();
extern template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::f32, kernels::reference>>();
#endif
#if defined(ISOTOPE_COMPILED_VULKAN_BF16)
extern template std::span<const record_function> code_of<target<backend::vulkan, precision::bf16, kernels::native>>();
extern template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::bf16, kernels::native>>();
extern template std::span<const record_function> code_of<target<backend::vulkan, precision::bf16, kernels::portable>>();
extern template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::bf16, kernels::portable>>();
extern template std::span<const record_function> code_of<target<backend::vulkan, precision::bf16, kernels::reference>>();
extern template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::bf16, kernels::reference>>();
#endif
}  // namespace isotope::vulkan
