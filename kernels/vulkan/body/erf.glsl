// The error function, in what GLSL and C++ have in common; formulas.glsl says which names the including file defines.

// Error: 2 ULP. Below 0.9 it is x + x P(x^2), within 2^-31; above, 1 - e^-Q(|x|), Q the logarithm of 1 - erf, within 2^-27. From 4 on it
// rounds to 1.
FORMULA number erf_accurate(number x) {
  const number a = at_most(magnitude(x), 4.0f), t = a * a;
  number c = fma(t, 8.5294014e-5f, -0.00081796321f);
  c = fma(t, c, 0.0052042268f);
  c = fma(t, c, -0.026860666f);
  c = fma(t, c, 0.11283718f);
  c = fma(t, c, -0.37612635f);
  c = fma(t, c, 0.12837917f);
  number q = fma(a, -1.6430637e-6f, 4.6163859e-5f);
  q = fma(a, q, -0.00059758575f);
  q = fma(a, q, 0.0047626258f);
  q = fma(a, q, -0.026427638f);
  q = fma(a, q, 0.11008716f);
  q = fma(a, q, 0.6318239f);
  q = fma(a, q, 1.130231f);
  q = fma(a, q, -0.00031853965f);
  const exp_split s = split_exp(-q);
  const number above = 1.0f - power_of_two(s.k) * (1.0f + s.p);
  return keep_nan(with_sign(choose(a < 0.9f, fma(a, c, a), above), x), x);
}
