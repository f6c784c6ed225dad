// Numbers as the unevaluated sum of two floats, x the rounded value and y the rest: sums, products and quotients with about 46 bits. `precise`
// forbids contraction and reordering. Products are split by bits, because fma() may round twice.

// Adds to a running sum: x is the plain f32 sum of the terms, y the sum of its rounding errors.
vec2 plus(vec2 sum, float term) {
  precise const float s = sum.x + term, before = s - sum.x;
  precise const float error = (sum.x - (s - before)) + (term - before);
  precise const float rest = sum.y + error;
  return vec2(s, rest);
}
vec2 plus(vec2 sum, vec2 term) {
  vec2 s = plus(sum, term.x);
  precise const float rest = s.y + term.y;
  return vec2(s.x, rest);
}
// Returns the float nearest to a sum. If the sum is infinite or NaN, its error term is meaningless.
float value_of(vec2 sum) { return is_finite(sum.x) ? sum.x + sum.y : sum.x; }

// Returns a b exactly, if the product and its 2^-24th part are normal numbers.
vec2 product(float a, float b) {
  const float a1 = uintBitsToFloat((floatBitsToUint(a) + 0x800u) & 0xfffff000u), b1 = uintBitsToFloat((floatBitsToUint(b) + 0x800u) & 0xfffff000u);
  precise const float a2 = a - a1, b2 = b - b1, p = a * b;
  precise const float error = ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
  return vec2(p, error);
}
// Returns a / b with its error, for any driver's division: Vulkan allows it 2.5 ULP.
vec2 quotient(vec2 a, float b) {
  const float q = value_of(a) / b;
  if (!is_finite(q) || !is_finite(b)) return vec2(q, 0.0);
  const vec2 back = product(q, b);
  precise const float rest = ((a.x - back.x) - back.y) + a.y;
  precise const float more = rest / b, sum = q + more, error = more - (sum - q);
  return vec2(sum, error);
}
// Returns 1 / sqrt(v), v >= 0: the driver's value, corrected once.
float inverse_root(float v) {
  const float r = inversesqrt(v);
  if (v == 0.0) return INFINITY;
  if (!is_finite(r) || !is_finite(v) || v < 1e-30 || v > 1e30) return r;
  const vec2 square = product(r, r), one = product(square.x, v);
  precise const float missing = ((1.0 - one.x) - one.y) - square.y * v;
  return r + 0.5 * r * missing;
}
// Returns sqrt(a), a >= 0: the driver's value, corrected once.
vec2 root(vec2 a) {
  const float s = sqrt(a.x);
  if (s == 0.0 || !is_finite(s)) return vec2(s, 0.0);
  const vec2 square = product(s, s);
  precise const float rest = ((a.x - square.x) - square.y) + a.y;
  precise const float more = rest / (2.0 * s), sum = s + more, error = more - (sum - s);
  return vec2(sum, error);
}
