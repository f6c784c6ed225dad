#pragma once
// Arguments of reference/sample.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

inline constexpr int sample_threads = 256;  // of a block, which has a row

struct reference_sample_arguments {
  std::uint64_t history;                                    // (N, T) i32
  std::uint64_t recent;                                     // (K, N) i32
  std::uint64_t position;                                   // (N) i32
  std::uint64_t logits;                                     // (N, V)
  std::uint64_t draw;                                       // (N) i32
  std::uint64_t sampling;                                   // (N, 4) f32
  std::uint64_t key;                                        // (N, 4) i32
  std::uint64_t values, weights;                            // (N, V) f32
  std::int64_t logits_stride, sampling_stride, key_stride;  // of rows, in elements
  std::int64_t N, T, K, V;
  std::uint32_t stream;  // of Philox
  std::int32_t logits_type;
};

}  // namespace isotope::cuda::gpu
