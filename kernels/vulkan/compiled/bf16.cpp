/// The vulkan kernels of every bf16 target, compiled once: see backend/vulkan/compiled.hpp.
#include <isotope/backend/vulkan.hpp>

namespace isotope::vulkan {
template std::span<const record_function> code_of<target<backend::vulkan, precision::bf16, kernels::native>>();
template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::bf16, kernels::native>>();
template std::span<const record_function> code_of<target<backend::vulkan, precision::bf16, kernels::portable>>();
template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::bf16, kernels::portable>>();
template std::span<const record_function> code_of<target<backend::vulkan, precision::bf16, kernels::reference>>();
template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::bf16, kernels::reference>>();
}  // namespace isotope::vulkan
