// The inverse square root, in what GLSL and C++ have in common; formulas.glsl says which names the including file defines.

// Error: 2 ULP. Infinity with the sign of x at +-0, NaN below zero.
FORMULA number inverse_root(number x) {
  const word u = floatBitsToUint(x);
  const number y = quotient(1.0f, square_root(x)), none = uintBitsToFloat(0x7fc00000u), zero = 0.0f;
  const number special = choose((u & 0x7fffffffu) == 0u, uintBitsToFloat(u | 0x7f800000u), choose(u == 0x7f800000u, zero, none));
  return keep_nan(choose(u - 1u < 0x7f7fffffu, y, special), x);
}
