#pragma once
// The element functions in f32 with the same arithmetic on every device. Their one source is kernels/vulkan/body/formulas.glsl, written in
// what GLSL and C++ have in common; the PTX emitter makes the same instructions of it, so interpreted and emitted bodies agree bit for bit.
// The type `number` has an intrinsic function for every operation, so nothing is contracted whatever the compiler's flags are.
#include "access.cuh"

namespace isotope::cuda::gpu {
namespace formulas {

using word = std::uint32_t;
using flag = bool;
using code = std::uint32_t;

struct number {
  float value;
  number() = default;
  __device__ number(float x) : value(x) {}
  __device__ explicit number(word x) : value(float(x)) {}
};

__device__ inline number operator+(number a, number b) { return __fadd_rn(a.value, b.value); }
__device__ inline number operator-(number a, number b) { return __fsub_rn(a.value, b.value); }
__device__ inline number operator*(number a, number b) { return __fmul_rn(a.value, b.value); }
__device__ inline number fma(number a, number b, number c) { return __fmaf_rn(a.value, b.value, c.value); }
// Within 1, 1 and 2 ULP where operands and results are normal numbers; smaller results may be zero. The formulas need no more.
#if defined(ISOTOPE_EMULATED_DEVICE)
__device__ inline number inverse(number x) { return 1.0f / x.value; }
__device__ inline number sqrt(number x) { return __fsqrt_rn(x.value); }
__device__ inline number exp2(number x) { return exp2f(x.value); }
#else
__device__ inline number inverse(number x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x.value));
  return y;
}
__device__ inline number sqrt(number x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x.value));
  return y;
}
__device__ inline number exp2(number x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x.value));
  return y;
}
#endif
__device__ inline number operator/(number a, number b) { return a * inverse(b); }
__device__ inline number operator-(number a) { return -a.value; }
__device__ inline flag operator<(number a, number b) { return a.value < b.value; }
__device__ inline flag operator>(number a, number b) { return a.value > b.value; }

__device__ inline word floatBitsToUint(number x) { return __float_as_uint(x.value); }
__device__ inline number uintBitsToFloat(word x) { return __uint_as_float(x); }

__device__ inline word choose(flag condition, word yes, word no) { return condition ? yes : no; }
__device__ inline number choose(flag condition, number yes, number no) { return condition ? yes : no; }
__device__ inline number choose(flag condition, float yes, float no) { return condition ? yes : no; }
__device__ inline number choose(flag condition, float yes, number no) { return condition ? number(yes) : no; }
__device__ inline number choose(flag condition, number yes, float no) { return condition ? yes : number(no); }

#define FORMULA __device__ inline
#include <isotope/kernels/vulkan/body/formulas.glsl>
#undef FORMULA

}  // namespace formulas

/// The result of an instruction of a fused body, not rounded to its format.
__device__ inline float result_of(std::uint32_t code, float a, float b, float c, float k) {
  return formulas::result_of(code, a, b, c, k).value;
}
// The same functions of plain floats, for kernels; formulas.glsl states their errors.
__device__ inline float exp_accurate(float x) { return formulas::exp_accurate(x).value; }
__device__ inline float log_accurate(float x) { return formulas::log_accurate(x).value; }
__device__ inline float tanh_accurate(float x) { return formulas::tanh_accurate(x).value; }
__device__ inline float sigmoid_accurate(float x) { return formulas::sigmoid_accurate(x).value; }
__device__ inline float divide(float a, float b) { return formulas::divide(a, b).value; }
__device__ inline float square_root(float x) { return formulas::square_root(x).value; }

/// e^x for x <= 0 where it is summed or rounded to 16 bits: to 1.5 ULP for results in f32 and within 2 ULP of 2^y for narrower formats.
/// Results below 2^-126 may be zero, and those of NaN may be numbers: kernels check for NaN themselves.
__device__ inline float exponential(float x, int type) {
  using formulas::number;
  if (type != f32) return formulas::exp2(number(x) * 1.44269504f).value;
  const formulas::exp_split s = formulas::split_exp(formulas::at_least(x, -87.0f));  // limits x so that 2^k below is normal
  return x < -87.0f ? 0.0f : __uint_as_float(__float_as_uint((number(1.0f) + s.p).value) + (s.k << 23));
}

}  // namespace isotope::cuda::gpu
