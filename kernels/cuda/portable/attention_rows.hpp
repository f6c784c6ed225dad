#pragma once
/// Which of the portable attention kernels runs a step.
#include <array>
#include <string_view>

#include <isotope/kernels/cuda/attention/heads.hpp>

#include "attention_rows.h"

namespace isotope::cuda {

/// A function for heads of up to tile.D elements.
struct attention_rows_kernel {
  std::string_view function;
  gpu::attention_rows_tile tile;
};
using attention_rows_kernels = std::array<attention_rows_kernel, std::size(gpu::attention_sizes_of_rows)>;

/// Returns the kernel for the smallest head size that is large enough. Needs D <= 256.
template <class Heads> const attention_rows_kernel& fitting_kernel(const attention_rows_kernels& all, const Heads& h) {
  for (const auto& k : all)
    if (k.tile.D >= h.D) return k;
  return all.back();
}

/// The speed of these kernels, by that of f32 tiles, in steps of 32 rows where those have 64. Few rows leave most warps of a block of f32 tiles without work: there
/// these are faster, up to 32 queries or keys. Between 0.53 and 0.56 that is so for all sizes.
inline constexpr double rows_speed = 0.54;

/// Returns why a step runs by the definition; empty if it does not.
template <class Heads> std::string_view rows_refusal(const Heads& h, const launch& l, std::int64_t shared_bytes) {
  if (h.D > gpu::attention_sizes_of_rows[std::size(gpu::attention_sizes_of_rows) - 1]) return "the heads have more than 256 elements";
  if (shared_bytes > l.device->shared_bytes) return "the device has too little shared memory";
  return {};
}

}  // namespace isotope::cuda
