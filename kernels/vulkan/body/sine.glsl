// Sine and cosine, in what GLSL and C++ have in common; formulas.glsl says which names the including file defines, and words multiply
// here, too.

// The upper 32 bits of a m for m < 2^24.
FORMULA word upper_half(word a, word m) {
  const word a1 = a >> 16, a0 = a & 0xffffu, m1 = m >> 16, m0 = m & 0xffffu;
  const word left = a1 * m0, right = a0 * m1;
  return a1 * m1 + (left >> 16) + (right >> 16) + (((left & 0xffffu) + (right & 0xffffu) + ((a0 * m0) >> 16)) >> 16);
}
// The word at place i of five.
FORMULA word one_of(word i, word a, word b, word c, word d, word e) {
  return choose(i == 0u, a, choose(i == 1u, b, choose(i == 2u, c, choose(i == 3u, d, e))));
}

// |x| = count pi/2 + rest, |rest| <= pi/4 to 2 ULP; the upper bits of count are lost. Of 2/pi it takes the 96 bits that matter for the
// exponent of x, from the first one that does not give a multiple of four quarter turns, so the result is as exact for large x as for
// small ones.
// Source: Payne & Hanek 1983, Radian reduction for trigonometric functions.
struct quarter_turns {
  number rest;
  word count;
};
FORMULA quarter_turns quarter_turns_of(number x) {
  const word u = floatBitsToUint(x) & 0x7fffffffu, m = (u & 0x7fffffu) | 0x800000u;
  const word place = (u >> 23) - 120u, i = place >> 5, shift = place & 31u, unshift = 31u - shift;
  const word p0 = 0u, p1 = 0xa2f9836eu, p2 = 0x4e441529u, p3 = 0xfc2757d1u;  // 32 zeros and the bits of 2/pi
  const word p4 = 0xf534ddc0u, p5 = 0xdb629599u, p6 = 0x3c439041u, p7 = 0xfe5163abu;
  const word t1 = one_of(i, p1, p2, p3, p4, p5), t2 = one_of(i, p2, p3, p4, p5, p6);
  const word w0 = (one_of(i, p0, p1, p2, p3, p4) << shift) | ((t1 >> 1) >> unshift);
  const word w1 = (t1 << shift) | ((t2 >> 1) >> unshift);
  const word w2 = (t2 << shift) | ((one_of(i, p3, p4, p5, p6, p7) >> 1) >> unshift);
  // the upper two words of m times the three, in units of 2^-62 quarter turns modulo four
  const word part = w1 * m, low = part + upper_half(w2, m), one = 1u, none = 0u;
  const word high = w0 * m + upper_half(w1, m) + choose(low < part, one, none);
  quarter_turns r;
  r.count = (high + 0x20000000u) >> 30;
  const word above = high - (r.count << 30);
  const flag negative = above > 0x7fffffffu;
  const word upper = choose(negative, 0u - above - choose(low == 0u, none, one), above), lower = choose(negative, 0u - low, low);
  const number turns = fma(number(upper), 9.31322575e-10f, number(lower) * 2.16840434e-19f);  // 2^-30, 2^-62
  const number rest = fma(turns, 1.57079637f, turns * -4.37113883e-8f);
  r.rest = choose(negative, -rest, rest);
  const flag small = u < 0x3f000000u;
  r.count = choose(small, none, r.count);
  r.rest = choose(small, uintBitsToFloat(u), r.rest);
  return r;
}
// sin(count pi/2 + rest), both polynomials within 2^-30.
FORMULA number sine_of(number rest, word count) {
  const number t = rest * rest;
  const number sine = fma(rest * t, fma(t, fma(t, fma(t, 2.7249314e-6f, -0.00019840083f), 0.0083333319f), -0.16666667f), rest);
  const number cosine = fma(t, fma(t, fma(t, fma(t, 2.4547437e-5f, -0.00138883f), 0.041666664f), -0.5f), 1.0f);
  return uintBitsToFloat(floatBitsToUint(choose((count & 1u) == 0u, sine, cosine)) ^ ((count & 2u) << 30));
}
// NaN at infinity, and where x is NaN.
FORMULA number finite_or_nan(number y, number x) {
  const word u = floatBitsToUint(x) & 0x7fffffffu;
  return keep_nan(choose(u < 0x7f800000u, y, uintBitsToFloat(0x7fc00000u)), x);
}

// Error: 3 ULP, for any x.
FORMULA number sin_accurate(number x) {
  const quarter_turns r = quarter_turns_of(x);
  return finite_or_nan(uintBitsToFloat(floatBitsToUint(sine_of(r.rest, r.count)) ^ (floatBitsToUint(x) & 0x80000000u)), x);
}
// Error: 3 ULP, for any x.
FORMULA number cos_accurate(number x) {
  const quarter_turns r = quarter_turns_of(x);
  return finite_or_nan(sine_of(r.rest, r.count + 1u), x);
}
