// The element functions, written once in the words that GLSL and C++ share: math.glsl makes shader functions of them, the emitter of SPIR-V
// (isotope/backend/vulkan/spirv) the same instructions, tests the same arithmetic on the host. Whoever includes this file gives meaning to
//   number, word, flag    f32, u32 and truth; number(word) converts, float and unsigned literals mix with them
//   FORMULA               what stands before a function: nothing in it may be contracted or reassociated
//   fma, sqrt, /          the target's: one or two roundings, about 3 ULP, 2.5 ULP
//   floatBitsToUint, uintBitsToFloat, choose(flag, yes, no)
//
// All are branch-free. NaN is told by bits, for drivers may assume that there is none. Where fma rounds twice, results stay within the stated
// errors unless said otherwise. Results below 2^-126 may be flushed to zero. Errors are in units of the last place of an f32 result.

FORMULA flag nan_bits(word u) { return (u & 0x7fffffffu) > 0x7f800000u; }
FORMULA number keep_nan(number y, number x) { return choose(nan_bits(floatBitsToUint(x)), x, y); }
FORMULA number magnitude(number x) { return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu); }
// y >= 0 with the sign of x.
FORMULA number with_sign(number y, number x) { return uintBitsToFloat(floatBitsToUint(y) | (floatBitsToUint(x) & 0x80000000u)); }
FORMULA flag sign_of(number x) { return floatBitsToUint(x) > 0x7fffffffu; }
FORMULA number at_most(number x, number bound) { return choose(x > bound, bound, x); }
FORMULA number at_least(number x, number bound) { return choose(x < bound, bound, x); }

// a / b for 2^-60 <= |b| <= 2^60: within 1.6 ULP, correctly rounded in nearly all cases where fma rounds once.
FORMULA number quotient(number a, number b) {
  const number inverse = 1.0f / b;
  const number q = a * inverse;
  return fma(fma(-q, b, a), inverse, q);
}

// Integers are words modulo 2^32. 2^k for -126 <= k <= 127.
FORMULA number power_of_two(word k) { return uintBitsToFloat((k + 127u) << 23); }
// y 2^k for -252 <= k <= 254, rounded once.
FORMULA number scaled(number y, word k) {
  const word half_k = ((k + 1024u) >> 1) - 512u;
  return y * power_of_two(half_k) * power_of_two(k - half_k);
}

// e^x = 2^k (1 + p) for |x| < 2^21, p within 2^-27: x = k ln 2 + r with |r| <= ln 2 / 2, and a polynomial for (e^r - 1 - r) / r^2.
struct exp_split {
  number p;
  word k;
};
FORMULA exp_split split_exp(number x) {
  const number shifted = fma(x, 1.44269504f, 12582912.0f);  // 1.5 2^23: leaves the nearest integer in the low bits
  const number k = shifted - 12582912.0f;
  const number r = fma(k, 2.12194440e-4f, fma(k, -0.693359375f, x));  // k 0.693359375 is exact
  number c = fma(r, 0.00139263261f, 0.00836329274f);
  c = fma(r, c, 0.0416665547f);
  c = fma(r, c, 0.166665763f);
  c = fma(r, c, 0.5f);
  exp_split s;
  s.p = fma(r * r, c, r);
  s.k = floatBitsToUint(shifted) - 0x4b400000u;
  return s;
}

// 1.5 ULP. e^-inf = 0, overflows to infinity.
FORMULA number exp_accurate(number x) {
  const exp_split s = split_exp(at_least(at_most(x, 105.0f), -105.0f));
  return keep_nan(scaled(1.0f + s.p, s.k), x);
}

// 2 ULP. ln +-0 = -inf, NaN below zero; subnormal numbers are right, they become normal by bits.
// x = 2^e m with sqrt(1/2) <= m < sqrt(2), f = m - 1: ln x = e ln 2 + f - f^2/2 + f^3 Q(f).
FORMULA number log_accurate(number x) {
  const word u = floatBitsToUint(x);
  const flag subnormal = u < 0x00800000u;
  const word t = choose(subnormal, floatBitsToUint(number(u)), u) - 0x3f3504f3u;  // less the bits of sqrt(1/2)
  const number e = number((t + 0x40000000u) >> 23) - choose(subnormal, 277.0f, 128.0f);
  const number f = uintBitsToFloat((t & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const number f2 = f * f;
  number c = fma(f, 0.0697161141f, -0.114797338f);
  c = fma(f, c, 0.116854199f);
  c = fma(f, c, -0.124256873f);
  c = fma(f, c, 0.142490577f);
  c = fma(f, c, -0.166678023f);
  c = fma(f, c, 0.200007157f);
  c = fma(f, c, -0.24999997f);
  c = fma(f, c, 0.333333312f);
  const number tail = fma(-0.5f, f2, fma(e, -2.12194440e-4f, f * f2 * c));
  const number y = fma(e, 0.693359375f, f + tail);  // e 0.693359375 is exact
  const number special = choose((u & 0x7fffffffu) == 0u, uintBitsToFloat(0xff800000u),
                                choose(u == 0x7f800000u, x, choose(nan_bits(u), x, uintBitsToFloat(0x7fc00000u))));
  return choose(u - 1u < 0x7f7fffffu, y, special);
}

// 3 ULP: (e^2|x| - 1) / (e^2|x| + 1), with e^2|x| - 1 put together as 2^k (e^r - 1) + (2^k - 1), which cancels nothing for small x.
FORMULA number tanh_accurate(number x) {
  const exp_split s = split_exp(2.0f * at_most(magnitude(x), 10.0f));  // tanh 10 rounds to 1
  const number scale = power_of_two(s.k);
  const number expm1 = fma(scale, s.p, scale - 1.0f);
  return keep_nan(with_sign(quotient(expm1, expm1 + 2.0f), x), x);
}

// 3 ULP. |x| < 1: x P(x^2); beyond: 1 - e^-Q(|x|), with Q = -ln erfc.
FORMULA number erf_accurate(number x) {
  const number a = at_most(magnitude(x), 4.0f);  // erf 4 rounds to 1
  const number a2 = a * a;
  number near = fma(a2, 7.87587493e-05f, -0.000801686431f);
  near = fma(a2, near, 0.00518908724f);
  near = fma(a2, near, -0.0268542115f);
  near = fma(a2, near, 0.112835944f);
  near = fma(a2, near, -0.376126260f);
  near = fma(a2, near, 1.12837911f);
  number far = fma(a, -1.63715144e-06f, 4.60580434e-05f);
  far = fma(a, far, -0.000596805592f);
  far = fma(a, far, 0.00475959620f);
  far = fma(a, far, -0.0264211353f);
  far = fma(a, far, 0.110080086f);
  far = fma(a, far, 0.631826043f);
  far = fma(a, far, 1.13023341f);
  far = fma(a, far, -0.000320138054f);
  const exp_split s = split_exp(-far);
  const number scale = power_of_two(s.k);
  const number outer = 1.0f - fma(scale, s.p, scale);
  return keep_nan(with_sign(choose(a < 1.0f, a * near, outer), x), x);
}

// 3 ULP: 1 / (1 + e^-x), from e^-|x|, which never overflows.
FORMULA number sigmoid_accurate(number x) {
  const number e = exp_accurate(-magnitude(x));
  return quotient(choose(sign_of(x), e, 1.0f), 1.0f + e);
}
