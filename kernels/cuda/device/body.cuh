#pragma once
// The interpreter of fused bodies: the epilogue of a matmul, and element-wise steps of the reference set. Every result is rounded to its
// format before the next instruction reads it and nothing is contracted, so fused and unfused results are equal. All operands are read
// before the first result is stored, so outputs may overwrite operands.
#include "body.h"
#include "formulas.cuh"

namespace isotope::cuda::gpu {

/// The element of every operand that is read.
__device__ inline void body_load(const body& b, std::int64_t element, float (&x)[body_inputs]) {
  std::int64_t index[max_axes] = {};
  const int last = b.rank - 1;
  if (element < std::int64_t(1) << 31) {  // a 64-bit division takes several times as long
    std::uint32_t rest = std::uint32_t(element);
    for (int i = 0; i < last; ++i) {
      const std::uint32_t size = std::uint32_t(b.dims[i]), next = rest / size;
      index[i] = std::int64_t(rest - next * size);
      rest = next;
    }
    index[last] = std::int64_t(rest);
  } else {
    std::int64_t rest = element;
    for (int i = 0; i < last; ++i) {
      index[i] = rest % b.dims[i];
      rest /= b.dims[i];
    }
    index[last] = rest;
  }
  for (int k = 0; k < b.inputs; ++k) {
    if (((b.reads >> k) & 1u) == 0u) continue;
    std::int64_t at = 0;
    for (int i = 0; i <= last; ++i) at += index[i] * b.in[k].strides[i];
    x[k] = load(b.in[k].at, at, b.in[k].type);
  }
}

/// The results of a body at row-major index `element` of its outputs. `product` is that element of the kernel's own result, rounded to its
/// format.
__device__ inline void body_run(const body& b, std::int64_t element, float product) {
  float v[no_value + 1], x[body_inputs] = {}, y[body_outputs] = {};
  body_load(b, element, x);
  for (int k = 0; k < body_inputs; ++k) v[k] = x[k];
  v[no_value] = product;
  for (int j = 0; j < b.count; ++j) {
    const instruction& i = b.instructions[j];
    const float result = rounded(result_of(i.code, v[i.argument[0]], v[i.argument[1]], v[i.argument[2]], i.constant), i.type);
    v[body_inputs + j] = result;
    if (i.store >= 0) y[i.store] = result;
  }
  for (int k = 0; k < b.outputs; ++k) {
    formulas::number sum = y[k];
    if (((b.accumulate >> k) & 1u) != 0u) sum = sum + load(b.out[k].at, element, b.out[k].type);
    store(b.out[k].at, element, b.out[k].type, sum.value);
  }
}

}  // namespace isotope::cuda::gpu
