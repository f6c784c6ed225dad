/// The cuda targets of isotope-conform without cuBLASLt, so that the matmuls that it would take run on own kernels, which have planted bugs. On a GPU, where
/// device code comes from files, the kernels with bugs are those of sm_90a, and small matmuls run on them, too. ISOTOPE_LARGE_KERNELS has small matmuls run on the
/// kernels of large ones elsewhere.
#include "../../examples/conform/open_f16.hpp"
#include "../../examples/support/environment.hpp"

#include <isotope/backend/cuda.hpp>

namespace conform_program {
namespace {

iso::cuda::options without_library(const iso::gpu_options& given) {
  auto o = iso::options_for<iso::backend::cuda>(given);
  o.diagnose.no_library = true;
  const auto environment = support::captured_environment();
  o.diagnose.large_kernels = environment.contains("ISOTOPE_MUTANT_MODULES") || environment.contains("ISOTOPE_LARGE_KERNELS");
  return o;
}

}  // namespace

opened open_built_f32(std::string_view kernels, const iso::gpu_options& o) {
  return open_set<iso::backend::cuda, iso::precision::f32>(kernels, without_library(o));
}
opened open_built_bf16(std::string_view kernels, const iso::gpu_options& o) {
  return open_set<iso::backend::cuda, iso::precision::bf16>(kernels, without_library(o));
}
opened open_built_f16(std::string_view kernels, const iso::gpu_options& o) {
  return open_f16<iso::backend::cuda>(kernels, iso::options_for<iso::backend::cuda>(o));
}
}  // namespace conform_program
