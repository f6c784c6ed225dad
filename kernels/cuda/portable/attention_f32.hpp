#pragma once
/// Which of the attention kernels with large register tiles runs a step, if one does: attention_f32.cu and the two files for the gradient.
#include <array>
#include <string_view>

#include <isotope/kernels/cuda/attention/heads.hpp>

#include "attention_f32.h"

namespace isotope::cuda {

/// A function for heads of up to tile.D elements.
struct attention_f32_kernel {
  std::string_view function;
  gpu::attention_f32_tile tile;
};
using attention_f32_kernels = std::array<attention_f32_kernel, std::size(gpu::attention_f32_sizes)>;

/// Returns the kernel for the smallest head size that is large enough. Needs D <= 128.
template <class Heads> const attention_f32_kernel& fitting_kernel(const attention_f32_kernels& all, const Heads& h) {
  for (const auto& k : all)
    if (k.tile.D >= h.D) return k;
  return all.back();
}

/// Whether these kernels take operands of this form.
template <class Heads> bool takes_f32_tiles(const Heads& h, const launch& l, std::int64_t shared_bytes) {
  return h.D <= gpu::attention_f32_sizes[std::size(gpu::attention_f32_sizes) - 1] && h.all_of(dtype::f32) && h.aligned(4) &&
         shared_bytes <= l.device->shared_bytes;
}

}  // namespace isotope::cuda
