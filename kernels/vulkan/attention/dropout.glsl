// Which probabilities of attention are dropped: a pure function of seed, step, stream, query and key, so that the gradient finds what the forward
// dropped. Mirrors op::attention_shape::words. Bound by Philox's products, some 25 integer operations a probability.
#include "math/philox.glsl"

// Words of keys 4 k to 4 k + 3 of query row (b H + h) S + s.
uvec4 words_of(uint64_t scalars, uint stream, uint row, uint k) {
  const uint64_t seed = scalars_ref(scalars).seed;
  return philox4x32(uvec4(k, row, uint(scalars_ref(scalars).counter), stream), uvec2(uint(seed), uint(seed >> 32)));
}
