// Included by every kernel: extensions, the two constants that all share, element access by address in any format, and workgroup numbering.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WG = 64;        // invocations of a workgroup
layout(constant_id = 1) const uint SUBGROUP = 32;  // invocations of a subgroup

// The values of enum class dtype in core/precision.hpp.
const uint F32 = 0, BF16 = 1, F16 = 2, F64 = 3, I32 = 4, I64 = 5, U8 = 6, U16 = 7, U32 = 8, BOOL = 9;

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer f32_ref { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer u32_ref { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer u64_ref { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer u16_ref { uint16_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer u8_ref { uint8_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer u32x4_ref { uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer u32x2_ref { uvec2 at[]; };

// Mirrors vulkan::device_scalars.
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer scalars_ref {
  uint64_t seed, counter;
  int64_t optimizer_step;
  float learning_rate;
  uint padding_;
  uvec2 beta1_in_f64, beta2_in_f64;
  float epsilon, weight_decay, momentum, clip_norm, clip_value, gradient_scale;
  int sizes[16];
  float beta1, beta2, rest1, rest2;  // rest = 1 - beta
  float correction1, correction2;    // 1 - beta^t
};

#define INFINITY uintBitsToFloat(0x7f800000u)
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)
// Tests the bits: drivers may assume that there are no NaNs.
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

// Rounds to nearest, ties to even; NaN is kept.
uint bf16_bits(float x) {
  const uint u = floatBitsToUint(x);
  return is_nan(x) ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}
float bf16_value(uint bits) { return uintBitsToFloat(bits << 16); }
// Converts to half precision by bits, so that the rounding mode is fixed: to nearest, ties to even.
uint f16_bits(float x) {
  const uint u = floatBitsToUint(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return sign | 0x7e00u | ((a >> 13) & 0x3ffu);
  if (a >= 0x47800000u) return sign | 0x7c00u;
  if (a < 0x38800000u) {
    const uint exponent = a >> 23;
    if (exponent < 101u) return sign;
    const uint mantissa = (a & 0x7fffffu) | 0x800000u, shift = 126u - exponent;
    const uint kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u), half_way = 1u << (shift - 1u);
    return sign | (kept + (rest > half_way || (rest == half_way && (kept & 1u) == 1u) ? 1u : 0u));
  }
  const uint rebased = a - 0x38000000u;
  return sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13);
}
float f16_value(uint bits) {
  const uint sign = (bits & 0x8000u) << 16, e = (bits >> 10) & 0x1fu, m = bits & 0x3ffu;
  if (e == 31u) return uintBitsToFloat(sign | 0x7f800000u | (m << 13));
  if (e != 0u) return uintBitsToFloat(sign | ((e + 112u) << 23) | (m << 13));
  const float tiny = float(m) * uintBitsToFloat(0x33800000u);
  return sign != 0u ? -tiny : tiny;
}
// Rounds x as format t stores it.
float rounded(float x, uint t) {
  if (t == BF16) return bf16_value(bf16_bits(x));
  if (t == F16) return f16_value(f16_bits(x));
  if (t == BOOL) return x != 0.0 ? 1.0 : 0.0;
  return x;
}

// Returns element i of the tensor at `base` as f32, for floating-point formats and booleans. `t` is constant in every kernel, so one branch remains.
float load(uint64_t base, uint i, uint t) {
  if (t == F32) return f32_ref(base).at[i];
  if (t == BF16) return bf16_value(uint(u16_ref(base).at[i]));
  if (t == F16) return f16_value(uint(u16_ref(base).at[i]));
  return uint(u8_ref(base).at[i]) != 0u ? 1.0 : 0.0;
}
void store(uint64_t base, uint i, uint t, float x) {
  if (t == F32) f32_ref(base).at[i] = x;
  else if (t == BF16) u16_ref(base).at[i] = uint16_t(bf16_bits(x));
  else if (t == F16) u16_ref(base).at[i] = uint16_t(f16_bits(x));
  else u8_ref(base).at[i] = uint8_t(x != 0.0 ? 1 : 0);
}
int load_int(uint64_t base, uint i) { return int(u32_ref(base).at[i]); }

// Returns elements 4 i to 4 i + 3 by one access; `base` and the tensor's rows are multiples of 4 elements. f32, bf16, f16.
vec4 load4(uint64_t base, uint i, uint t) {
  if (t == F32) return uintBitsToFloat(u32x4_ref(base).at[i]);
  const uvec2 u = u32x2_ref(base).at[i];
  if (t == BF16) return uintBitsToFloat(uvec4(u.x << 16, u.x & 0xffff0000u, u.y << 16, u.y & 0xffff0000u));
  return vec4(unpackHalf2x16(u.x), unpackHalf2x16(u.y));  // one instruction instead of ten by bits, which would bound a gemv
}
void store4(uint64_t base, uint i, uint t, vec4 x) {
  if (t == F32) u32x4_ref(base).at[i] = floatBitsToUint(x);
  else if (t == BF16)
    u32x2_ref(base).at[i] = uvec2(bf16_bits(x.x) | (bf16_bits(x.y) << 16), bf16_bits(x.z) | (bf16_bits(x.w) << 16));
  else u32x2_ref(base).at[i] = uvec2(f16_bits(x.x) | (f16_bits(x.y) << 16), f16_bits(x.z) | (f16_bits(x.w) << 16));
}

// Numbers workgroups in the order in which vulkan::cover distributes them.
uint group_index() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }
// One dispatch never has 2^32 work items: a tensor has fewer than 2^31 elements.
uint item_index() { return group_index() * WG + gl_LocalInvocationID.x; }
