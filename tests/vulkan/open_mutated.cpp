/// The vulkan targets of isotope-conform with the active mutant. Kernels, and the code that records and submits them, come from the mutated sources.
#include "../../examples/conform/open_f16.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/mutants/chosen.hpp>

namespace conform_program {
namespace {

iso::vulkan::options mutated(const iso::gpu_options& given) {
  auto o = iso::options_for<iso::backend::vulkan>(given);
  constexpr std::uint32_t mutant = 1000;  // the constant of mutant.glsl
  o.diagnose.constants.push_back({mutant, std::uint32_t(iso::mutants::number)});
  return o;
}

}  // namespace

opened open_built_f32(std::string_view kernels, const iso::gpu_options& o) {
  return open_set<iso::backend::vulkan, iso::precision::f32>(kernels, mutated(o));
}
opened open_built_bf16(std::string_view kernels, const iso::gpu_options& o) {
  return open_set<iso::backend::vulkan, iso::precision::bf16>(kernels, mutated(o));
}
opened open_built_f16(std::string_view kernels, const iso::gpu_options& o) { return open_f16<iso::backend::vulkan>(kernels, mutated(o)); }
}  // namespace conform_program
