// The sign, in what GLSL and C++ have in common; formulas.glsl says which names the including file defines.

// Exact: +-1, but +-0 and NaN as they are.
FORMULA number sign_or_itself(number x) {
  return choose((floatBitsToUint(x) & 0x7fffffffu) - 1u < 0x7f800000u, with_sign(1.0f, x), x);
}
