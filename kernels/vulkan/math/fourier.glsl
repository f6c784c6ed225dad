// Complex numbers as vec2, and tables of e^(-2 pi i t / D) that the host calculates in f64.
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer vec2_ref { vec2 at[]; };

vec2 times(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// Swaps real and imaginary parts, which is i times the conjugate: a transform between swapped numbers runs in the other direction.
vec2 swapped(vec2 a, bool really) { return really ? a.yx : a; }

// Returns the twiddle factor e^(-2 pi i t / D), t < D. A short table holds every t (bits = 0); a long one holds 2^bits small angles, then D / 2^bits
// large ones.
vec2 twiddle(uint64_t table, uint bits, uint t) {
  if (bits == 0) return vec2_ref(table).at[t];
  return times(vec2_ref(table).at[t & ((1u << bits) - 1u)], vec2_ref(table).at[(1u << bits) + (t >> bits)]);
}

// Loads two numbers of a row of pairs. `aligned`: they lie in one or two words.
vec2 load_pair(uint64_t base, uint i, uint type, bool aligned) {
  if (!aligned) return vec2(load(base, 2 * i, type), load(base, 2 * i + 1, type));
  if (type == F32) return uintBitsToFloat(u32x2_ref(base).at[i]);
  const uint u = u32_ref(base).at[i];
  return type == BF16 ? vec2(bf16_value(u & 0xffffu), bf16_value(u >> 16)) : vec2(f16_value(u & 0xffffu), f16_value(u >> 16));
}
void store_pair(uint64_t base, uint i, uint type, bool aligned, vec2 z) {
  if (!aligned) {
    store(base, 2 * i, type, z.x);
    store(base, 2 * i + 1, type, z.y);
  } else if (type == F32) u32x2_ref(base).at[i] = floatBitsToUint(z);
  else if (type == BF16) u32_ref(base).at[i] = bf16_bits(z.x) | (bf16_bits(z.y) << 16);
  else u32_ref(base).at[i] = f16_bits(z.x) | (f16_bits(z.y) << 16);
}

// Returns twice bin k, 0 < k < h, of 2 h real numbers whose even and odd ones have the transforms E and O: a = E + i O at k, b the same at h - k, w =
// e^(-pi i k / h).
vec2 bin_of(vec2 a, vec2 b, vec2 w) {
  return vec2(a.x + b.x, a.y - b.y) + times(w, vec2(a.y + b.y, b.x - a.x));
}
// Returns 2 (E + i O) at k from bins k and h - k.
vec2 half_of(vec2 a, vec2 b, vec2 w) {
  const vec2 odd = times(vec2(w.x, -w.y), vec2(a.x - b.x, a.y + b.y));
  return vec2(a.x + b.x - odd.y, a.y - b.y + odd.x);
}
