#pragma once
// Arguments of reference/norm.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct reference_norm_arguments {
  std::uint64_t x;             // (rows, C)
  std::uint64_t weight, bias;  // (C); no bias: 0
  std::uint64_t y;             // (rows, C)
  std::uint64_t means, rstds;  // (rows) f32; no means: 0
  std::int64_t rows, C;
  double epsilon;
  std::int32_t x_type, weight_type, bias_type, y_type;
  std::int32_t centered;  // subtracts the mean and adds the bias: layer_norm
};
struct reference_norm_grad_arguments {
  std::uint64_t x, dy;           // (rows, C)
  std::uint64_t weight;          // (C)
  std::uint64_t means, rstds;    // (rows) f32
  std::uint64_t addend;          // (rows, C), of the format of dx; 0: there is none
  std::uint64_t dx;              // (rows, C)
  std::uint64_t dweight, dbias;  // (C)
  std::int64_t rows, C;
  std::int32_t x_type, dy_type, weight_type, dx_type, dweight_type, dbias_type;
  std::int32_t centered;
};

}  // namespace isotope::cuda::gpu
