#version 460
#extension GL_GOOGLE_include_directive : require
// Maximum, minimum and argmax: an invocation has one part of a result and takes every `parts`-th element. The first element that no later one beats
// wins; NaN beats all. Bound by bytes. Comparisons are of integers in the order of the numbers, so that a driver's handling of NaN does not matter.
#include "access.glsl"
#include "axes.glsl"
#include "number.glsl"

const uint MAX = 0, MIN = 1, ARGMAX = 2;
layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;
layout(constant_id = 4) const uint WHICH = MAX;

layout(push_constant, scalar) uniform push {
  uint64_t x;  // any strides
  uint64_t y;  // (parts, results)
  uint results, terms, parts;
  uint outer;                // axes before it index the results, the others the terms
  uint dims[6], strides[6];  // of x
};

const uint64_t GREATEST = ~uint64_t(0);
// Grows with the number; NaN is the greatest. -0 is below 0, but equal to it for argmax.
uint64_t ordered(uint64_t bits) {
  if (!is_float(X)) return is_signed(X) ? bits ^ (ONE << (integer_bits(X) - 1)) : bits;
  const int width = 1 + exponent_bits(X) + mantissa_bits(X);
  const uint64_t sign = ONE << (width - 1), magnitude = bits & (sign - ONE);
  if (magnitude > ((ONE << exponent_bits(X)) - ONE) << mantissa_bits(X)) return GREATEST;
  const bool below = (bits & sign) != 0 && !(WHICH == ARGMAX && magnitude == 0);
  return below ? sign - magnitude - ONE : sign + magnitude;
}

void main() {
  const uint i = item_index();
  if (i >= results * parts) return;
  const uint from = offset_of(i % results, dims, strides, 0, outer);
  uint winner = 0, index = 0;
  uint64_t best = 0;
  for (uint t = i / results; t < terms; t += parts) {
    const uint at = from + offset_of(t, dims, strides, outer, 6);
    uint64_t rank = ordered(bits_at(x, at, X));
    if (WHICH == MIN && rank != GREATEST) rank = GREATEST - rank - ONE;
    if (t == i / results || rank > best) {
      best = rank;
      winner = at;
      index = t;
    }
  }
  if (WHICH == ARGMAX) u32_ref(y).at[i] = index;
  else store(y, i, Y, load(x, winner, X));
}
