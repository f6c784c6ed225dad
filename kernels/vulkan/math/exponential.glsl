// e^x for x <= 0 where it is summed or rounded to 16 bits: to 1.5 ULP for f32; for narrower formats by the driver's exp2, a third of the
// instructions. Results below 2^-126 may be zero, and those of NaN may be numbers: kernels check for NaN themselves.
#include "math.glsl"

float exponential(float x, uint t) {
  if (t != F32) return exp2(x * 1.44269504);
  const exp_split s = split_exp(max(x, -87.0));  // limits x so that 2^k below is normal
  return x < -87.0 ? 0.0 : uintBitsToFloat(floatBitsToUint(1.0 + s.p) + (s.k << 23));
}
vec4 exponential(vec4 x, uint t) {
  if (t != F32) return exp2(x * 1.44269504);
  return vec4(exponential(x.x, t), exponential(x.y, t), exponential(x.z, t), exponential(x.w, t));
}
