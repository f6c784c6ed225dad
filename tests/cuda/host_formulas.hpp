#pragma once
// The interpreter of device/body.cuh on the host, with the arithmetic of device/formulas.cuh where the device's approximations round
// correctly.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <isotope/kernels/cuda/device/body.h>
#include <isotope/core/precision.hpp>

namespace isotope::cuda_test {
namespace on_host {

using word = std::uint32_t;
using flag = bool;
using code = std::uint32_t;
struct number {
  float value = 0;
  number() = default;
  number(float x) : value(x) {}
  explicit number(word x) : value(float(x)) {}
};
inline number operator+(number a, number b) { return a.value + b.value; }
inline number operator-(number a, number b) { return a.value - b.value; }
inline number operator*(number a, number b) { return a.value * b.value; }
inline number operator/(number a, number b) { return a * number(1.0f / b.value); }
inline number operator-(number a) { return -a.value; }
inline flag operator<(number a, number b) { return a.value < b.value; }
inline flag operator>(number a, number b) { return a.value > b.value; }
inline number fma(number a, number b, number c) { return std::fma(a.value, b.value, c.value); }
inline number sqrt(number x) { return std::sqrt(x.value); }
inline number exp2(number x) { return std::exp2(x.value); }
inline word floatBitsToUint(number x) { return std::bit_cast<word>(x.value); }
inline number uintBitsToFloat(word x) { return std::bit_cast<float>(x); }
inline word choose(flag condition, word yes, word no) { return condition ? yes : no; }
inline number choose(flag condition, number yes, number no) { return condition ? yes : no; }
inline number choose(flag condition, float yes, float no) { return condition ? yes : no; }
inline number choose(flag condition, float yes, number no) { return condition ? number(yes) : no; }
inline number choose(flag condition, number yes, float no) { return condition ? yes : number(no); }
#define FORMULA inline
#include <isotope/kernels/vulkan/body/formulas.glsl>
// These formulas are only in emitted bodies.
#include <isotope/kernels/vulkan/body/erf.glsl>
#include <isotope/kernels/vulkan/body/floor.glsl>
#include <isotope/kernels/vulkan/body/maximum.glsl>
#include <isotope/kernels/vulkan/body/pow.glsl>
#include <isotope/kernels/vulkan/body/rsqrt.glsl>
#include <isotope/kernels/vulkan/body/sign.glsl>
#include <isotope/kernels/vulkan/body/sine.glsl>
#undef FORMULA

}  // namespace on_host

/// Reads and writes an element of a format at an address.
inline float load(std::uint64_t base, std::int64_t i, dtype t) {
  const auto* from = reinterpret_cast<const unsigned char*>(base) + i * size_of(t);
  const auto get = [&](auto x) {
    std::memcpy(&x, from, sizeof x);
    return x;
  };
  switch (t) {
    case dtype::bf16: return float(get(bfloat16()));
    case dtype::f16: return float(get(float16()));
    case dtype::boolean: return *from != 0 ? 1.0f : 0.0f;
    default: return get(0.0f);
  }
}
inline void store(std::uint64_t base, std::int64_t i, dtype t, float x) {
  auto* to = reinterpret_cast<unsigned char*>(base) + i * size_of(t);
  const auto put = [&](auto y) { std::memcpy(to, &y, sizeof y); };
  switch (t) {
    case dtype::bf16: return put(bfloat16(x));
    case dtype::f16: return put(float16(x));
    case dtype::boolean: return put(std::uint8_t(x != 0 ? 1 : 0));
    default: return put(x);
  }
}
inline float rounded(float x, dtype t) {
  std::uint64_t element = 0;
  const auto at = reinterpret_cast<std::uint64_t>(&element);
  store(at, 0, t, x);
  return load(at, 0, t);
}

/// The results of a body at one element of its outputs.
inline void body_run(const cuda::gpu::body& b, std::int64_t element) {
  float v[cuda::gpu::no_value + 1]{}, y[cuda::gpu::body_outputs]{};
  for (int k = 0; k < b.inputs; ++k) {
    if (((b.reads >> k) & 1u) == 0) continue;
    std::int64_t at = 0, rest = element;
    for (int i = 0; i < b.rank; ++i) {
      at += rest % b.dims[i] * b.in[k].strides[i];
      rest /= b.dims[i];
    }
    v[k] = load(b.in[k].at, at, dtype(b.in[k].type));
  }
  for (int j = 0; j < b.count; ++j) {
    const cuda::gpu::instruction& i = b.instructions[j];
    const float x = on_host::result_of(i.code, v[i.argument[0]], v[i.argument[1]], v[i.argument[2]], i.constant).value;
    v[cuda::gpu::body_inputs + j] = rounded(x, dtype(i.type));
    if (i.store >= 0) y[i.store] = v[cuda::gpu::body_inputs + j];
  }
  for (int k = 0; k < b.outputs; ++k) {
    const dtype t = dtype(b.out[k].type);
    store(b.out[k].at, element, t, ((b.accumulate >> k) & 1u) != 0 ? y[k] + load(b.out[k].at, element, t) : y[k]);
  }
}

}  // namespace isotope::cuda_test
