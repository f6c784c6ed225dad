#pragma once
/// Whether a step of attention runs on tensor cores, and with which tiles.
#include <array>
#include <string_view>

#include <isotope/kernels/cuda/attention/heads.hpp>

#include "attention_tiles.h"

namespace isotope::cuda {

/// A kernel for one head size: the names of its functions without and with dropout, and its tiles.
struct attention_mma_kernel {
  std::string_view plain, dropout;
  gpu::attention_tile tile;

  std::string_view function(const attention_heads& h) const { return h.dropped() ? dropout : plain; }
};
using attention_mma_kernels = std::array<attention_mma_kernel, std::size(gpu::attention_sizes_of_tiles)>;

/// Returns the kernel for the smallest head size that is large enough. Needs D <= 128.
template <class Heads> const attention_mma_kernel& fitting_kernel(const attention_mma_kernels& all, const Heads& h) {
  for (const auto& k : all)
    if (k.tile.D >= h.D) return k;
  return all.back();
}

/// Returns why a step does not run on tensor cores; empty if it does.
template <class Heads> std::string_view tensor_core_refusal(const Heads& h, const launch& l, std::int64_t shared_bytes) {
  if (l.device->switches.no_matrix_units) return "matrix units are switched off";
  if (!l.device->tensor_cores()) return "the device has no tensor cores that multiply bf16";
  if (h.arguments.q.type != std::int32_t(dtype::bf16)) return "the kernel multiplies only bf16";
  if (!h.all_of(dtype::bf16)) return "operands differ in format";
  if (h.D % 8 != 0 || h.D > 128) return "the head size is not a multiple of 8 up to 128";
  if (!h.aligned(8)) return "rows do not start at multiples of 16 bytes";
  if (!(h.arguments.scale > 0)) return "the scale of the scores is not positive";
  if (h.T == 0) return "there are no keys";
  if (shared_bytes > l.device->shared_bytes) return "the device has too little shared memory";
  return {};
}

}  // namespace isotope::cuda
