// The arguments of the shaders of cached attention. Mirrors vulkan::attention_cached_push.
layout(constant_id = 2) const uint Q_TYPE = F32;      // format of q and y
layout(constant_id = 3) const uint CACHE_TYPE = F32;  // format of keys and values
layout(constant_id = 4) const uint D = 64;            // head size
layout(constant_id = 5) const uint PARTS = 1;         // workgroups that share the keys of a query; with more than one, a second dispatch adds their sums
layout(constant_id = 6) const uint PART = 1024;       // keys of each of them

layout(push_constant, scalar) uniform push {
  uint64_t q;                   // (N, H D)
  uint64_t keys, values;        // (B, G, T, D)
  uint64_t sequence, position;  // (N) i32
  uint64_t y;                   // (N, H D)
  uint64_t sums;                // (N, H, PARTS, D) f32: means of values before the division, if there are several parts
  uint64_t totals;              // (N, H, PARTS, 2) f32: the largest score and the sum of weights of each
  uint64_t new_key, new_value;  // (G, D): what a step that also appends writes at the query's own position
  uint q_stride, y_stride;      // of rows, in elements
  uint N, B, H, G, T;
  uint window;  // a query sees this many keys; 0: all up to its own
  float scale;
};

// The keys of row n: those of slot `slot` from `first` to `end` - 1; none if the row is idle.
struct key_range {
  uint slot, first, end;
};
key_range keys_of(uint n) {
  const int slot = load_int(sequence, n), own = load_int(position, n);
  if (slot < 0 || uint(slot) >= B || own < 0 || uint(own) >= T) return key_range(0, 0, 0);
  const uint end = uint(own) + 1;
  return key_range(uint(slot), window != 0 && end > window ? end - window : 0, end);
}

// The largest score of no keys, and of keys whose scores are all minus infinity.
const float NO_SCORE = -3.4028235e38;
// Stands for the largest score if one of them is NaN or infinite: then the result is NaN.
bool is_undefined(float score) { return (floatBitsToUint(score) & 0x7fffffffu) > 0x7f800000u || floatBitsToUint(score) == 0x7f800000u; }
