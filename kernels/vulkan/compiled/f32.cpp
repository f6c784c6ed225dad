/// The vulkan kernels of every f32 target, compiled once: see backend/vulkan/compiled.hpp.
#include <isotope/backend/vulkan.hpp>

namespace isotope::vulkan {
template std::span<const record_function> code_of<target<backend::vulkan, precision::f32, kernels::native>>();
template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::f32, kernels::native>>();
template std::span<const record_function> code_of<target<backend::vulkan, precision::f32, kernels::portable>>();
template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::f32, kernels::portable>>();
template std::span<const record_function> code_of<target<backend::vulkan, precision::f32, kernels::reference>>();
template std::span<const pair_function> pairs_of<target<backend::vulkan, precision::f32, kernels::reference>>();
}  // namespace isotope::vulkan
