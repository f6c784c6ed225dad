// The softmax denominator of a row of logits. Needs math.glsl and two_float.glsl.
struct denominator {
  bool defined;  // no NaN, and the largest logit is finite
  float top;     // the largest logit; -infinity without elements
  float total, log_total;  // of exp(x - top)
};
float weight(float x, float top) { return is_finite(x) ? exp_accurate(x - top) : 0.0; }
// Takes n elements `step` apart. Loops take four per iteration: some drivers leave a loop after 65,535 iterations of an invocation (lavapipe of
// Debian 12).
denominator denominator_of(uint64_t base, uint from, uint step, uint n, uint t) {
  float top = -INFINITY;
  bool nan = false;
  for (uint first = 0; first < n; first += 4)
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (first + j < n) {
        const float x = load(base, from + (first + j) * step, t);
        if (is_nan(x)) nan = true;
        else if (x > top) top = x;
      }
    }
  if (nan || !is_finite(top)) return denominator(false, nan ? NOT_A_NUMBER : top, NOT_A_NUMBER, NOT_A_NUMBER);
  vec2 total = vec2(0.0);
  for (uint first = 0; first < n; first += 4)
    [[unroll]] for (uint j = 0; j < 4; ++j)
      if (first + j < n) total = plus(total, weight(load(base, from + (first + j) * step, t), top));
  return denominator(true, top, value_of(total), log_accurate(value_of(total)));
}
