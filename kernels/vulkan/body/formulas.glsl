// The element functions, written once in what GLSL and C++ have in common: math.glsl makes shader functions of them, the SPIR-V emitter
// (isotope/backend/vulkan/spirv) the same instructions, and tests run the same arithmetic on the host. An including file defines
//   number, word, flag    f32, u32 and truth; number(word) converts, float and unsigned literals mix with them
//   FORMULA               the prefix of a function: nothing in it may be contracted or reassociated
//   fma, sqrt, exp2, /    the target's: one or two roundings, about 3 ULP, 3 + 2 |x| ULP, 2.5 ULP
//   floatBitsToUint, uintBitsToFloat, choose(flag, yes, no)
//
// All are branch-free. NaN is detected by bits, because drivers may assume that there is none. fma is only for speed: some drivers round it twice and
// reassociate its operands, so plain products and sums are used where order matters. Results below 2^-126 may be flushed to zero. Errors are in units
// of the last place of an f32 result.

FORMULA flag nan_bits(word u) { return (u & 0x7fffffffu) > 0x7f800000u; }
FORMULA number keep_nan(number y, number x) { return choose(nan_bits(floatBitsToUint(x)), x, y); }
FORMULA number magnitude(number x) { return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu); }
// y >= 0 with the sign of x.
FORMULA number with_sign(number y, number x) { return uintBitsToFloat(floatBitsToUint(y) | (floatBitsToUint(x) & 0x80000000u)); }
FORMULA flag sign_of(number x) { return floatBitsToUint(x) > 0x7fffffffu; }
FORMULA number at_most(number x, number bound) { return choose(x > bound, bound, x); }
FORMULA number at_least(number x, number bound) { return choose(x < bound, bound, x); }

// a / b for 2^-60 <= |b| <= 2^60: within 1.6 ULP, nearly always correctly rounded where fma rounds once.
FORMULA number quotient(number a, number b) {
  const number inverse = 1.0f / b;
  const number q = a * inverse;
  return fma(fma(-q, b, a), inverse, q);
}

// Integers are words modulo 2^32. power_of_two(k) = 2^k for -126 <= k <= 127.
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
FORMULA number expm1_near_zero(number r) {
  number c = fma(r, 0.00139263261f, 0.00836329274f);
  c = fma(r, c, 0.0416665547f);
  c = fma(r, c, 0.166665763f);
  c = fma(r, c, 0.5f);
  return fma(r * r, c, r);
}
FORMULA exp_split split_exp(number x) {
  const number shifted = x * 1.44269504f + 12582912.0f;  // 1.5 2^23 leaves the nearest integer in the low bits
  const number k = shifted - 12582912.0f;
  exp_split s;
  s.p = expm1_near_zero((x - k * 0.693359375f) + k * 2.12194440e-4f);  // the first product is exact
  s.k = floatBitsToUint(shifted) - 0x4b400000u;
  return s;
}

// Error: 1.5 ULP. e^-inf = 0; overflow gives infinity.
FORMULA number exp_accurate(number x) {
  const exp_split s = split_exp(at_least(at_most(x, 105.0f), -105.0f));
  return keep_nan(scaled(1.0f + s.p, s.k), x);
}

// Error: 2 ULP. ln(+-0) = -inf, NaN below zero; subnormal numbers are normalised by their bits.
// x = 2^e m with sqrt(1/2) <= m < sqrt(2), f = m - 1: ln x = e ln 2 + f - f^2/2 + f^3 Q(f).
FORMULA number log_accurate(number x) {
  const word u = floatBitsToUint(x);
  const flag subnormal = u < 0x00800000u;
  const word t = choose(subnormal, floatBitsToUint(number(u)), u) - 0x3f3504f3u;  // minus the bits of sqrt(1/2)
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
  const number tail = (f * f2 * c - e * 2.12194440e-4f) - 0.5f * f2;
  const number y = e * 0.693359375f + (f + tail);  // the first product is exact
  const number special = choose((u & 0x7fffffffu) == 0u, uintBitsToFloat(0xff800000u),
                                choose(u == 0x7f800000u, x, choose(nan_bits(u), x, uintBitsToFloat(0x7fc00000u))));
  return choose(u - 1u < 0x7f7fffffu, y, special);
}

// Error: 3 ULP. (e^2|x| - 1) / (e^2|x| + 1), with e^2|x| - 1 computed as 2^k (e^r - 1) + (2^k - 1), which cancels nothing for small x.
FORMULA number tanh_accurate(number x) {
  const exp_split s = split_exp(2.0f * at_most(magnitude(x), 10.0f));  // tanh 10 rounds to 1
  const number scale = power_of_two(s.k);
  const number expm1 = fma(scale, s.p, scale - 1.0f);
  return keep_nan(with_sign(quotient(expm1, expm1 + 2.0f), x), x);
}

// Error: 3 ULP. 1 / (1 + e^-x), from e^-|x|, which never overflows.
FORMULA number sigmoid_accurate(number x) {
  const number e = exp_accurate(-magnitude(x));
  return quotient(choose(sign_of(x), e, 1.0f), 1.0f + e);
}

// Error: 3 ULP. x / (1 + e^-x), from e^-|x| = 2^k (1 + p). -0 at -inf, the limit.
FORMULA number silu_accurate(number x) {
  const number least = at_least(x, -120.0f);
  const exp_split s = split_exp(-at_most(magnitude(x), 120.0f));
  const number q = quotient(choose(sign_of(x), 1.0f + s.p, 1.0f), 1.0f + scaled(1.0f + s.p, s.k));
  return keep_nan(scaled(least * q, choose(sign_of(x), s.k, 0u)), x);
}

// s (1 + x (1 - s)), s = 1 / (1 + e^-x). With e = e^-|x| = 2^k (1 + p) and d = 1 + e it is (d + x e) / d^2 above zero and e (d + x) / d^2 below,
// where the sum is ordered so that near the root, -1.2784645, only the error of 2^k p remains.
FORMULA number silu_derivative(number x) {
  const number v = at_least(at_most(x, 120.0f), -120.0f);
  const exp_split s = split_exp(-magnitude(v));
  const number scale = scaled(1.0f, s.k), e = scaled(1.0f + s.p, s.k), d = 1.0f + e;
  const number above = fma(v, e, d), below = ((1.0f + v) + scale) + scale * s.p;
  const number q = quotient(quotient(choose(sign_of(x), below * (1.0f + s.p), above), d), d);
  return keep_nan(scaled(q, choose(sign_of(x), s.k, 0u)), x);
}

// A number of more than 24 bits, as high + low.
struct two_words {
  number high, low;
};
// x (c1 + c3 x^2) within 2^-28 for |x| <= 12, by exact products of short factors: c1 and c3 have 8 bits, their rests are separate.
FORMULA two_words cubic(number x, number c1, number c1_rest, number c3, number c3_rest) {
  const number top = uintBitsToFloat((floatBitsToUint(x) + 0x8000u) & 0xffff0000u), rest = x - top;  // the nearest number of 8 bits; a rest of 16 bits
  const number top2 = top * top, y = c3 * top2, y_top = uintBitsToFloat(floatBitsToUint(y) & 0xffff0000u);
  const number w_rest = fma(c3_rest, top2, (y - y_top) + c1_rest), slope = fma(c3 + c3_rest, fma(x, x + top, top2), c1 + c1_rest);
  two_words r;
  r.high = top * (c1 + y_top);
  r.low = fma(rest, slope, top * w_rest);
  return r;
}
// e^(high + low).
FORMULA exp_split split_exp_two(two_words x) {
  const number shifted = (x.high + x.low) * 1.44269504f + 12582912.0f;
  const number k = shifted - 12582912.0f;
  exp_split s;
  s.p = expm1_near_zero((x.high - k * 0.693359375f) + (k * 2.12194440e-4f + x.low));
  s.k = floatBitsToUint(shifted) - 0x4b400000u;
  return s;
}

// 0.5 (1 + tanh u) = 1 / (1 + e^-2u) with 2u = 2 sqrt(2/pi) (x + 0.044715 x^3), computed like silu. -0 at -inf, the limit.
FORMULA exp_split gelu_gate(number x) {  // e^2u for x <= 0
  return split_exp_two(cubic(x, 1.59375f, 0.00201912161f, 0.0712890625f, 6.57537726e-5f));
}
FORMULA number gelu_tanh(number x) {
  const number least = at_least(x, -12.0f);  // gelu -12 rounds to -0
  const exp_split s = gelu_gate(-at_most(magnitude(x), 12.0f));
  const number q = quotient(choose(sign_of(x), 1.0f + s.p, 1.0f), 1.0f + scaled(1.0f + s.p, s.k));
  return keep_nan(scaled(least * q, choose(sign_of(x), s.k, 0u)), x);
}
// Computed like silu_derivative, with v = x d(2u)/dx in place of x; the root is at -0.7524614.
FORMULA number gelu_tanh_derivative(number x) {
  const number least = at_least(at_most(x, 12.0f), -12.0f);
  const two_words v = cubic(least, 1.59375f, 0.00201912161f, 0.213867188f, 0.000197261318f);
  const exp_split s = gelu_gate(-magnitude(least));
  const number scale = scaled(1.0f, s.k), e = scaled(1.0f + s.p, s.k), d = 1.0f + e;
  const number above = fma(v.high + v.low, e, d), below = ((1.0f + v.high) + scale) + fma(scale, s.p, v.low);
  const number q = quotient(quotient(choose(sign_of(x), below * (1.0f + s.p), above), d), d);
  return keep_nan(scaled(q, choose(sign_of(x), s.k, 0u)), x);
}

// For results of 16 bits, in a third of the time: within 2^-14 of the exact value, or 2^-22 near the derivative's root. Both terms of 1 + e^-2u are
// scaled by 2^-64, so that results down to 2^-126 do not overflow on the way.
FORMULA number gelu_tanh_odds(number x) { return exp2(fma(x, fma(x * x, -0.102943240f, -2.30220820f), -64.0f)); }
FORMULA number gelu_tanh_short(number x) {
  const number v = at_least(x, -11.0f);  // gelu(-11) rounds to -0, gelu(11) to 11
  const number gate = 8.67361738e-19f / (5.42101086e-20f + gelu_tanh_odds(v));  // 16 times the gate
  return keep_nan(choose(x > 11.0f, x, v * gate * 0.0625f), x);
}
FORMULA number gelu_tanh_derivative_short(number x) {  // s (1 + v (1 - s)), s = 1 / (1 + e^-2u), v = x d(2u)/dx
  const number v = at_least(at_most(x, 11.0f), -11.0f);
  const number e = gelu_tanh_odds(v), inverse = 1.0f / (5.42101086e-20f + e);
  return keep_nan(5.42101086e-20f * inverse * fma(v * fma(v * v, 0.214063906f, 1.59576912f), e * inverse, 1.0f), x);
}

// The normal distribution at -a, a = |x| <= 15: Phi(-a) = E r R(t) and its slope Phi(-a) - a phi(a) = E (root - a) H(t), with E = e^(-a^2/2), r = 1 /
// (1 + 0.3 a) and t = r minus the middle of its range. Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, the form used by BERT.
FORMULA exp_split bell(number a) {
  const number top = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u);  // 12 bits: its square is exact
  two_words x;
  x.high = -0.5f * (top * top);
  x.low = -0.5f * ((a - top) * (a + top));
  return split_exp_two(x);
}
FORMULA number gelu_erf(number x) {
  const number a = at_most(magnitude(x), 15.0f);
  const number r = quotient(1.0f, fma(0.3f, a, 1.0f)), t = r - 0.590909064f;
  number c = fma(t, 0.00360589288f, -0.02048246f);
  c = fma(t, c, 0.00127981568f);
  c = fma(t, c, 0.0440029725f);
  c = fma(t, c, -0.0101521108f);
  c = fma(t, c, -0.0905498639f);
  c = fma(t, c, -0.00970419217f);
  c = fma(t, c, 0.225782931f);
  c = fma(t, c, 0.407592803f);
  c = fma(t, c, 0.397670031f);
  c = fma(t, c, 0.254923642f);
  const exp_split s = bell(a);
  const number rc = r * c, below = fma(rc, s.p, rc);
  const number phi = choose(sign_of(x), below, 1.0f - scaled(below, s.k));
  return keep_nan(scaled(at_least(x, -15.0f) * phi, choose(sign_of(x), s.k, 0u)), x);
}
// For results of 16 bits, within 2^-16 of the exact value: what the sum lacks of x above zero, and what is left of it below, is a r C(r) e^(-a^2/2).
FORMULA number gelu_erf_short(number x) {
  const number a = at_most(magnitude(x), 13.5f);  // beyond, the rest is below 2^-126
  const number r = 1.0f / fma(0.3f, a, 1.0f);
  number c = fma(r, -0.0775073662f, 0.217269421f);
  c = fma(r, c, -0.0183562562f);
  c = fma(r, c, 0.144955397f);
  c = fma(r, c, 0.113550335f);
  c = fma(r, c, 0.120092243f);
  return keep_nan(fma(-(a * r * c), exp2(a * a * -0.721347520f), choose(sign_of(x), 0.0f, x)), x);
}
FORMULA number gelu_erf_derivative(number x) {
  const number a = at_most(magnitude(x), 15.0f);
  const number t = quotient(fma(-0.177272722f, a, 0.409090936f), fma(0.3f, a, 1.0f));
  number c = fma(t, 0.00653079897f, 0.00990560465f);
  c = fma(t, c, -0.0184124615f);
  c = fma(t, c, -0.0333447456f);
  c = fma(t, c, 0.0371451937f);
  c = fma(t, c, 0.172612771f);
  c = fma(t, c, 0.273411483f);
  c = fma(t, c, 0.273820728f);
  c = fma(t, c, 0.494889736f);
  const exp_split s = bell(a);
  const number below = (1.0f + s.p) * (((0.751791537f - a) - 1.21144495e-8f) * c);
  const number slope = choose(sign_of(x), below, 1.0f - scaled(below, s.k));
  return keep_nan(scaled(slope, choose(sign_of(x), s.k, 0u)), x);
}

// Returns x 2^149 if x >= 0 is subnormal, which is its bits as an integer, else x.
FORMULA flag subnormal_bits(word u) { return (u & 0x7fffffffu) < 0x00800000u; }

// a / b for any numbers, 1.6 ULP. It divides mantissas in [1, 2), so that no device leaves the range in which its division is accurate.
FORMULA number divide(number a, number b) {
  const word u = floatBitsToUint(a) & 0x7fffffffu, v = floatBitsToUint(b) & 0x7fffffffu;
  const word m = choose(subnormal_bits(u), floatBitsToUint(number(u)), u), n = choose(subnormal_bits(v), floatBitsToUint(number(v)), v);
  const word shift = choose(subnormal_bits(u), 0u, 149u) - choose(subnormal_bits(v), 0u, 149u);
  const word k = (m >> 23) - (n >> 23) + shift + 1024u;
  const word within = choose(k < 772u, 772u, choose(k > 1278u, 1278u, k)) - 1024u;
  number y = scaled(quotient(uintBitsToFloat((m & 0x7fffffu) | 0x3f800000u), uintBitsToFloat((n & 0x7fffffu) | 0x3f800000u)), within);
  const number infinity = uintBitsToFloat(0x7f800000u), not_a_number = uintBitsToFloat(0x7fc00000u);
  y = choose(u == 0u, 0.0f, y);
  y = choose(v == 0x7f800000u, 0.0f, y);
  y = choose(v == 0u, choose(u == 0u, not_a_number, infinity), y);
  y = choose(u == 0x7f800000u, choose(v == 0x7f800000u, not_a_number, infinity), y);
  y = uintBitsToFloat(floatBitsToUint(y) | ((floatBitsToUint(a) ^ floatBitsToUint(b)) & 0x80000000u));
  return keep_nan(keep_nan(y, b), a);
}

// Error: 1 ULP. sqrt(+-0) = +-0, NaN below zero.
FORMULA number square_root(number x) {
  const word u = floatBitsToUint(x);
  const flag subnormal = subnormal_bits(u);
  const number v = choose(subnormal, 2.0f * number(u), x);  // x 2^150
  const number s = sqrt(v);
  const number y = fma(fma(-s, s, v), 0.5f / s, s) * choose(subnormal, 2.64697796e-23f, 1.0f);
  const number special = choose((u & 0x7fffffffu) == 0u, x, choose(u == 0x7f800000u, x, uintBitsToFloat(0x7fc00000u)));
  return keep_nan(choose(u - 1u < 0x7f7fffffu, y, special), x);
}

// Maps bits to the order of the numbers; both zeros are equal.
FORMULA word order_of(word u) {
  return choose((u & 0x7fffffffu) == 0u, 0x80000000u, choose(u > 0x7fffffffu, u ^ 0xffffffffu, u | 0x80000000u));
}

// Instructions of fused bodies by number, as instructions.hpp lists them: f of up to three operands and the constant k. Comparisons use bits, because
// a device may flush subnormal numbers to zero. Numbers from 32 on are the shorter forms for results of 16 bits.
FORMULA number result_of(code instruction, number a, number b, number c, number k) {
  const number one = 1.0f, zero = 0.0f;
  switch (instruction) {
    case 0u: return a + b;
    case 1u: return a - b;
    case 2u: return a * b;
    case 3u: return divide(a, b);
    case 4u: return k * a;  // scale
    case 5u: return a + k;  // shift
    case 6u: {              // less
      const number ordered = choose(order_of(floatBitsToUint(a)) < order_of(floatBitsToUint(b)), one, zero);
      return choose(nan_bits(floatBitsToUint(a)), zero, choose(nan_bits(floatBitsToUint(b)), zero, ordered));
    }
    case 7u: {  // equal
      const number same = choose(order_of(floatBitsToUint(a)) == order_of(floatBitsToUint(b)), one, zero);
      return choose(nan_bits(floatBitsToUint(a)), zero, same);
    }
    case 8u: return choose((floatBitsToUint(a) & 0x7fffffffu) == 0u, c, b);  // select
    case 9u: return exp_accurate(a);
    case 10u: return log_accurate(a);
    case 11u: return square_root(a);
    case 12u: return divide(b, 2.0f * a);  // sqrt_grad
    case 13u: return a * a;                // square
    case 14u: return tanh_accurate(a);
    case 15u: return b * ((1.0f - a) * (1.0f + a));  // tanh_grad
    case 16u: return sigmoid_accurate(a);
    case 17u: return b * a * (1.0f - a);                                                // sigmoid_grad
    case 18u: return choose(floatBitsToUint(a) - 0x80000001u < 0x7f800000u, zero, a);  // relu: below zero, which NaN is not
    case 19u: return choose(floatBitsToUint(a) - 1u < 0x7f800000u, b, zero);           // relu_grad: above zero, which NaN is not
    case 20u: return silu_accurate(a);
    case 21u: return b * silu_derivative(a);
    case 22u: return gelu_tanh(a);
    case 23u: return b * gelu_tanh_derivative(a);
    case 24u: return gelu_erf(a);
    case 25u: return b * gelu_erf_derivative(a);
    case 26u: return -divide(c, b) * divide(a, b);  // div_grad
    case 54u: return gelu_tanh_short(a);
    case 55u: return b * gelu_tanh_derivative_short(a);
    case 56u: return gelu_erf_short(a);
    default: return a;
  }
}
