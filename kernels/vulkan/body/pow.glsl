// Powers, in what GLSL and C++ have in common; formulas.glsl says which names the including file defines.

// The number without the last 12 of its 24 bits: products of two such numbers are exact.
FORMULA number upper_part(number x) { return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); }

// ln a for a > 0 within 2^-28 of it: a = 2^e m with sqrt(1/2) <= m < sqrt(2), s = (m - 1) / (m + 1): ln a = e ln 2 + 2 s + s^3 P(s^2).
FORMULA two_words log_in_two(number a) {
  const word u = floatBitsToUint(a);
  const flag subnormal = u < 0x00800000u;
  const word t = choose(subnormal, floatBitsToUint(number(u)), u) - 0x3f3504f3u;  // minus the bits of sqrt(1/2)
  const number e = number((t + 0x40000000u) >> 23) - choose(subnormal, 277.0f, 128.0f);
  const number m = uintBitsToFloat((t & 0x7fffffu) + 0x3f3504f3u), f = m - 1.0f, d = m + 1.0f;
  const number d_rest = m - (d - 1.0f), s = upper_part(quotient(f, d)), d_top = upper_part(d);
  // s (d + d_rest) is subtracted from f without an error
  const number s_rest = ((f - s * d_top) - s * (d - d_top) - s * d_rest) * (1.0f / d);
  const number full = s + s_rest, s2 = full * full;
  number c = fma(s2, 0.23331614f, 0.2855078f);
  c = fma(s2, c, 0.40000123f);
  c = fma(s2, c, 0.66666669f);
  const number binary = e * 0.693359375f, twice = 2.0f * s;  // the product is exact
  two_words r;
  r.high = binary + twice;
  r.low = ((twice - (r.high - binary)) - e * 2.12194440e-4f) + (2.0f * s_rest + full * s2 * c);
  return r;
}
// e^(b ln a) for a > 0.
FORMULA number power_of_positive(number a, number b) {
  const two_words l = log_in_two(a);
  const number sum = l.high + l.low, top = upper_part(sum), rest = (l.high - top) + l.low, b_top = upper_part(b), b_rest = b - b_top;
  const number about = b * sum;
  two_words x;
  x.high = b_top * top;
  x.low = b_rest * top + b * rest;
  const flag large = about > 105.0f, small = about < -105.0f;
  const number zero = 0.0f;
  x.high = choose(large, 105.0f, choose(small, -105.0f, x.high));
  x.low = choose(large, zero, choose(small, zero, x.low));
  const exp_split s = split_exp_two(x);
  return scaled(1.0f + s.p, s.k);
}

// Error: 3 ULP. As pow of C: 1 if a = 1 or b = 0, also for NaN; NaN for negative a with a b that is not whole.
FORMULA number pow_accurate(number a, number b) {
  const word u = floatBitsToUint(a), v = floatBitsToUint(b), u0 = u & 0x7fffffffu, v0 = v & 0x7fffffffu;
  const number one = 1.0f, zero = 0.0f, infinity = uintBitsToFloat(0x7f800000u), none = uintBitsToFloat(0x7fc00000u);
  // whether b is whole, and odd; numbers from 2^24 on are even
  const number shifted = magnitude(b) + 8388608.0f;
  const flag fine = v0 < 0x4b000000u;
  const word whole = choose(fine, choose(floatBitsToUint(shifted - 8388608.0f) == v0, 1u, 0u), 1u);
  const word parity = choose(fine, floatBitsToUint(shifted), choose(v0 < 0x4b800000u, v0, 0u)) & whole & 1u;
  // where a is 0 or infinite, or b is infinite, the size is 0, 1 or infinite
  const word grows = choose(u0 > 0x3f800000u, 0u, 1u) ^ choose(v > 0x7fffffffu, 0u, 1u);  // |a| > 1 and b > 0, or neither
  const number limit = choose(grows == 1u, infinity, zero);
  number y = power_of_positive(choose(u0 == 0u, one, uintBitsToFloat(u0)), choose(v0 < 0x7f800000u, b, one));
  y = choose(u0 == 0u, limit, y);
  y = choose(u0 == 0x7f800000u, limit, y);
  y = choose(v0 == 0x7f800000u, limit, y);
  y = choose(u0 == 0x3f800000u, one, y);
  const word sign = (u & 0x80000000u) & (parity << 31);
  y = uintBitsToFloat(floatBitsToUint(y) | sign);
  // a < 0 needs a whole b; -0 and -infinity do not
  const word finite_below = choose(u - 0x80000001u < 0x7f7fffffu, 1u, 0u);
  y = choose((finite_below & (1u - whole)) == 1u, none, y);
  y = keep_nan(keep_nan(y, b), a);
  return choose(v0 == 0u, one, choose(u == 0x3f800000u, one, y));
}
