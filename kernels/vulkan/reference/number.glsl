// Elements of every format as (-1)^negative mantissa 2^exponent, by integers alone, because devices need not have 64-bit floats.
struct number {
  bool negative, nan, infinite;
  uint64_t mantissa;
  int exponent;
};

uint64_t bits_at(uint64_t base, uint i, uint t) {
  if (t == F64 || t == I64) return u64_ref(base).at[i];
  if (t == F32 || t == I32 || t == U32) return uint64_t(u32_ref(base).at[i]);
  if (t == BF16 || t == F16 || t == U16) return uint64_t(u16_ref(base).at[i]);
  return uint64_t(u8_ref(base).at[i]);
}
void put_bits(uint64_t base, uint i, uint t, uint64_t bits) {
  if (t == F64 || t == I64) u64_ref(base).at[i] = bits;
  else if (t == F32 || t == I32 || t == U32) u32_ref(base).at[i] = uint(bits);
  else if (t == BF16 || t == F16 || t == U16) u16_ref(base).at[i] = uint16_t(bits);
  else u8_ref(base).at[i] = uint8_t(bits);
}

bool is_float(uint t) { return t == F32 || t == BF16 || t == F16 || t == F64; }
// Returns the bits of a float format's mantissa and exponent.
int mantissa_bits(uint t) { return t == F64 ? 52 : t == F32 ? 23 : t == F16 ? 10 : 7; }
int exponent_bits(uint t) { return t == F64 ? 11 : t == F16 ? 5 : 8; }
// Returns the bits of an integer format; of a signed one, the top bit counts.
int integer_bits(uint t) { return t == I64 ? 64 : t == I32 || t == U32 ? 32 : t == U16 ? 16 : 8; }
bool is_signed(uint t) { return t == I32 || t == I64; }

const uint64_t ONE = uint64_t(1);

number read_number(uint64_t bits, uint t) {
  number n = number(false, false, false, bits, 0);
  if (is_float(t)) {
    const int m = mantissa_bits(t), e = exponent_bits(t);
    const uint64_t top = (ONE << e) - ONE, field = (bits >> m) & top;
    n.negative = ((bits >> (m + e)) & ONE) != 0;
    n.mantissa = bits & ((ONE << m) - ONE);
    n.nan = field == top && n.mantissa != 0;
    n.infinite = field == top && n.mantissa == 0;
    if (field != 0) n.mantissa |= ONE << m;
    n.exponent = int(max(uint(field), 1u)) - ((1 << (e - 1)) - 1) - m;
  } else if (t == BOOL) {
    n.mantissa = bits != 0 ? ONE : uint64_t(0);
  } else if (is_signed(t)) {
    const uint64_t sign = ONE << (integer_bits(t) - 1);
    n.negative = (bits & sign) != 0;
    n.mantissa = n.negative ? (uint64_t(0) - bits) & (sign | (sign - ONE)) : bits;
  }
  return n;
}

int highest_bit(uint64_t x) {
  const uint high = uint(x >> 32);
  return high != 0 ? 32 + findMSB(high) : findMSB(uint(x));
}
// Returns mantissa 2^-shift, rounded to nearest, ties to even.
uint64_t shifted_down(uint64_t mantissa, int shift) {
  if (shift <= 0) return mantissa << -shift;
  if (shift > 64) return uint64_t(0);
  const uint64_t half_way = ONE << (shift - 1);
  const uint64_t kept = shift == 64 ? uint64_t(0) : mantissa >> shift, rest = shift == 64 ? mantissa : mantissa & ((ONE << shift) - ONE);
  return kept + (rest > half_way || (rest == half_way && (kept & ONE) != 0) ? ONE : uint64_t(0));
}
uint64_t float_bits(number n, uint t) {
  const int m = mantissa_bits(t), e = exponent_bits(t), bias = (1 << (e - 1)) - 1;
  const uint64_t sign = n.negative ? ONE << (m + e) : uint64_t(0), infinity = ((ONE << e) - ONE) << m;
  if (n.nan) return sign | infinity | (ONE << (m - 1));
  if (n.infinite) return sign | infinity;
  if (n.mantissa == 0) return sign;
  const int magnitude = highest_bit(n.mantissa) + n.exponent, least = 1 - bias;  // 2^magnitude <= |n|; the least normal is 2^least
  const bool normal = magnitude >= least;
  const uint64_t kept = shifted_down(n.mantissa, (normal ? magnitude : least) - m - n.exponent);
  // Adding the leading bit of `kept`, and its carry if rounding reaches the next power of two, increments the exponent field.
  const uint64_t rounded = normal ? (uint64_t(min(magnitude, bias + 1) + bias - 1) << m) + kept : kept;
  return sign | min(rounded, infinity);
}
// Rounds toward zero; numbers out of range give the nearest end, NaN gives 0.
uint64_t integer_of(number n, uint t) {
  const int bits = integer_bits(t);
  const uint64_t most = is_signed(t) ? (ONE << (bits - 1)) - ONE + (n.negative ? ONE : uint64_t(0)) : n.negative ? uint64_t(0) : (ONE << bits) - ONE;
  if (n.nan) return uint64_t(0);
  uint64_t magnitude = n.mantissa;
  if (n.infinite) magnitude = most;
  else if (n.mantissa != 0 && n.exponent > 0) magnitude = n.exponent + highest_bit(n.mantissa) >= 64 ? most : n.mantissa << n.exponent;
  else if (n.exponent < 0) magnitude = n.exponent <= -64 ? uint64_t(0) : n.mantissa >> -n.exponent;
  magnitude = min(magnitude, most);
  return n.negative ? uint64_t(0) - magnitude : magnitude;
}
uint64_t as_format(number n, uint t) {
  if (is_float(t)) return float_bits(n, t);
  if (t == BOOL) return n.nan || n.infinite || n.mantissa != 0 ? ONE : uint64_t(0);
  return integer_of(n, t);
}
