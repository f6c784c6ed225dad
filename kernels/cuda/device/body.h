#pragma once
// A fused element-wise body as kernels receive it; included by host and device code.
#include "axes.h"

namespace isotope::cuda::gpu {

inline constexpr int body_inputs = 8, body_outputs = 6, body_instructions = 16;
inline constexpr std::int8_t no_value = 24;  // an operand that is not there, or the result of the kernel that the body is fused into

/// One instruction. Values are numbered: operands 0 to 7, results from 8 on, 24 the result of the kernel itself.
struct instruction {
  std::uint8_t code;  // its number in instruction_ops (kernels/cuda/body/instructions.hpp)
  std::uint8_t type;  // the format to which the result is rounded
  std::int8_t store;  // the output that it is written to, or -1
  std::int8_t argument[3];
  float constant;
};
/// The outputs are dense and have the sizes `dims` (innermost axis first); operands broadcast to them by strides of 0.
struct body {
  std::int32_t count, inputs, outputs, rank;
  std::uint32_t reads, accumulate;  // bit k: some instruction reads operand k; the result is added to output k
  std::int64_t dims[max_axes];
  struct operand {
    std::uint64_t at;
    std::int32_t type;
    std::int64_t strides[max_axes];
  } in[body_inputs];
  struct result {
    std::uint64_t at;
    std::int32_t type;
  } out[body_outputs];
  gpu::instruction instructions[body_instructions];
};

}  // namespace isotope::cuda::gpu
