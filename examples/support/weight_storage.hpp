#pragma once
/// The format in which a program of decoders stores weights.
#include "gpt_session.hpp"

#include <isotope/interop/quantised_folder.hpp>
#include <isotope/io/model_folder.hpp>

namespace support {

/// As --weights says, or else as the folder has them, where this program's kernels read that.
inline isotope::weight_storage storage_for(const isotope::io::model_folder& folder, const run_options& run) {
  const auto asked = isotope::weights::named(run.diagnose.stored_weights());
  if (asked != nullptr || target::precision::type != isotope::dtype::f32) return asked;
  const auto kernel = isotope::find_kernel(isotope::kernel_table<target>, &isotope::info<isotope::op::matmul>, target::precision::type);
  return kernel >= 0 && isotope::kernel_table<target>[std::size_t(kernel)].reads_blocks ? isotope::interop::storage_of(folder) : nullptr;
}

}  // namespace support
