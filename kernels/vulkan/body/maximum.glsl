// The larger and the smaller of two numbers, in what GLSL and C++ have in common; formulas.glsl says which names the including file
// defines.

// Maps bits to the order of the numbers, with -0 below 0.
FORMULA word strict_order_of(word u) { return choose(u > 0x7fffffffu, u ^ 0xffffffffu, u | 0x80000000u); }
// y, or the first operand that is NaN.
FORMULA number keep_both_nan(number y, number a, number b) { return keep_nan(keep_nan(y, b), a); }
// Exact.
FORMULA number larger_of(number a, number b) {
  const flag below = strict_order_of(floatBitsToUint(a)) < strict_order_of(floatBitsToUint(b));
  return keep_both_nan(choose(below, b, a), a, b);
}
FORMULA number smaller_of(number a, number b) {
  const flag below = strict_order_of(floatBitsToUint(a)) < strict_order_of(floatBitsToUint(b));
  return keep_both_nan(choose(below, a, b), a, b);
}
