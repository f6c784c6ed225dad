// Computes a probability and the derivative with respect to its score from the means of attention_mean.comp.
layout(constant_id = 16) const uint DY = F32;

struct attention_operands {
  uint64_t q, k, v, mask;  // (B, S, H D), (B, T, G D), (B, T, G D), (B, T)
  uint64_t dy;             // (B, S, H D)
  uint64_t means;          // (B, H, S, 2) f32
  uint64_t scalars;
  rows q_at, k_at, v_at, dy_at;
  uint B, S, T;
  float scale;
};
// p multiplies dy; ds is the derivative with respect to the score.
struct probability {
  float p, ds;
};
probability probability_of(attention_operands o, uint stream, uint b, uint h, uint s, uint t) {
  const uint i = (b * H + h) * o.S + s, g = h / (H / G);
  const float lse = f32_ref(o.means).at[2 * i], mean = f32_ref(o.means).at[2 * i + 1];
  if (floatBitsToUint(lse) == 0xff800000u) return probability(0.0, 0.0);  // the query sees no key
  const float x = o.scale * dot_of(o.q, at(o.q_at, b, s, h), Q, o.k, at(o.k_at, b, t, g), K);
  const float p = exp_accurate((MASKED ? x + load(o.mask, b * MASK_BATCH + t, MASK) : x) - lse);
  const float dp = dot_of(o.dy, at(o.dy_at, b, s, h), DY, o.v, at(o.v_at, b, t, g), V);
  if (DROPPED) {
    const float share = share_of(o.scalars, stream, i, t);
    return share == 0.0 ? probability(0.0, p * -mean) : probability(p * share, p * (dp * share - mean));
  }
  return probability(p, p * (dp - mean));
}
