// The largest whole number that is not larger, in what GLSL and C++ have in common; formulas.glsl says which names the including file
// defines.

// Exact. Adding 2^23 rounds |x| to a whole number; comparisons use bits, because a device may flush subnormal numbers to zero.
FORMULA number largest_whole(number x) {
  const word u = floatBitsToUint(x) & 0x7fffffffu;
  const number nearest = (magnitude(x) + 8388608.0f) - 8388608.0f;
  const word n = floatBitsToUint(nearest);
  const number down = choose(u < n, nearest - 1.0f, nearest), up = choose(n < u, nearest + 1.0f, nearest);
  return choose(u < 0x4b000000u, with_sign(choose(sign_of(x), up, down), x), x);
}
