// Decides which attention probabilities are dropped: a pure function of seed, step, stream, query and key, so that the gradient repeats the choice of
// the forward pass. Mirrors op::attention_shape::words. Bound by the multiplications of Philox, some 25 integer operations per probability.
#include "math/philox.glsl"

// Returns the words of keys 4 k to 4 k + 3 for query row (b H + h) S + s.
uvec4 words_of(uint64_t scalars, uint stream, uint row, uint k) {
  const uint64_t seed = scalars_ref(scalars).seed;
  return philox4x32(uvec4(k, row, uint(scalars_ref(scalars).counter), stream), uvec2(uint(seed), uint(seed >> 32)));
}
