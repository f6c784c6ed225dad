#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Draws tokens, a row per workgroup. The likeliest tokens are found by their least member, digit by digit of its bits (radix selection); weights are added as whole
// numbers of 2^-40, so that the order does not matter. Bound by latency: a pass over the row, from the caches, for each digit.
#include "access.glsl"
#include "rows/sample.glsl"

layout(constant_id = 3) const uint DIGIT = 8;  // bits, at least 6
layout(constant_id = 4) const uint WORDS = 1;  // of 32 tokens each

const uint BINS = 1 << DIGIT, PARTIES = 64, OWN = BINS / PARTIES;  // an invocation of each party adds its bins
shared uint low_sums[BINS], high_sums[BINS];  // of weights, by the digit of a rank or by the id
shared uint64_t party_sums[PARTIES];
shared uint seen[WORDS];  // bit t: the penalty is for token t
shared uint parts[WG / SUBGROUP];

uint row;
bool penal, weighed;
float penalty, top, temperature;
uint least = 0;  // the tokens that remain have a rank above this one, or this rank
uint end;        // and an id below this one

uint most_of_group(uint x) {
  x = subgroupMax(x);
  barrier();
  if (subgroupElect()) parts[gl_SubgroupID] = x;
  barrier();
  for (uint i = 0; i < WG / SUBGROUP; ++i) x = max(x, parts[i]);
  return x;
}

float value_at(uint t) {
  const float x = load(logits, row * logits_stride + t, LOGITS);
  if (!penal || ((seen[t / 32] >> (t % 32)) & 1u) == 0) return x;
  return x < 0.0 ? penalty * x : value_of(quotient(vec2(x, 0.0), penalty));
}
bool remains(uint r, uint t) { return r != 0 && (r > least || (r == least && t < end)); }
// The weight of a token in units of 2^-40, the low word first; 1 where tokens are counted.
uvec2 weight_of(float x) {
  if (!weighed) return uvec2(1, 0);
  precise const float w = exp_accurate(scaled(x, top, temperature)) * 256.0;
  precise const float rest = (w - floor(w)) * 4294967296.0;
  return uvec2(uint(rest), uint(w));
}
uint64_t whole(uvec2 w) { return uint64_t(w.x) | uint64_t(w.y) << 32; }

void clear_bins() {
  barrier();
  for (uint i = gl_LocalInvocationID.x; i < BINS; i += WG) low_sums[i] = high_sums[i] = 0;
  barrier();
}
void add_to(uint bin, uvec2 w) {
  const uint before = w.x == 0 ? 0 : atomicAdd(low_sums[bin], w.x), high = w.y + (before + w.x < before ? 1 : 0);
  if (high != 0) atomicAdd(high_sums[bin], high);
}
uint64_t sum_of(uint bin) { return whole(uvec2(low_sums[bin], high_sums[bin])); }
uint bin_of(uint i, bool falling) { return falling ? BINS - 1 - i : i; }
void add_parties(bool falling) {
  barrier();
  const uint i = min(gl_LocalInvocationID.x, PARTIES - 1);
  uint64_t sum = 0;
  for (uint k = 0; k < OWN; ++k) sum += sum_of(bin_of(i * OWN + k, falling));
  if (i == gl_LocalInvocationID.x) party_sums[i] = sum;
  barrier();
}
uint64_t all_parties() {
  uint64_t sum = 0;
  for (uint i = 0; i < PARTIES; ++i) sum += party_sums[i];
  return sum;
}
// The first bin, in falling order if `falling`, up to which the sums reach `wanted` > 0, and the sums before it and in it; NONE if all do not reach it. All
// invocations alike.
struct crossing {
  uint bin;
  uint64_t before, there;
};
crossing reach(uint64_t wanted, bool falling) {
  uint64_t sum = 0;
  uint i = 0;
  while (i < PARTIES && sum + party_sums[i] < wanted) sum += party_sums[i++];
  if (i == PARTIES) return crossing(NONE, 0, 0);
  uint k = i * OWN;
  while (sum + sum_of(bin_of(k, falling)) < wanted) sum += sum_of(bin_of(k++, falling));
  return crossing(bin_of(k, falling), sum, sum_of(bin_of(k, falling)));
}
// The least whole number that is at least `part` times `all`, and at least 1; `part` is below 1.
uint64_t part_of(uint64_t all, float part) {
  const uint bits = floatBitsToUint(part), shift = 150 - (bits >> 23);  // part = mantissa 2^-shift
  if (!(part > 0.0) || shift > 95) return 1;
  const uint64_t mantissa = uint64_t((bits & 0x7fffffu) | 0x800000u), low = (all & 0xffffffffUL) * mantissa, high = (all >> 32) * mantissa + (low >> 32),
                 tail = low & 0xffffffffUL;
  uint64_t r, rest;
  if (shift < 32) {
    r = (high << (32 - shift)) + (tail >> shift);
    rest = tail & ((1UL << shift) - 1);
  } else {
    r = high >> (shift - 32);
    rest = (high & ((1UL << (shift - 32)) - 1)) | tail;
  }
  r += rest != 0 ? 1 : 0;
  return r == 0 ? 1 : r;
}

// Returns the end of the lowest ids of this rank whose weights reach `wanted`.
uint first_ids(uint rank, uint64_t wanted) {
  const uint in_bin = (V + BINS - 1) / BINS, limit = rank == least ? end : V;
  clear_bins();
  for (uint t = gl_LocalInvocationID.x; t < V; t += WG) {
    const float x = value_at(t);
    const uint r = rank_of(x);
    if (r == rank && remains(r, t)) add_to(t / in_bin, weight_of(x));
  }
  add_parties(false);
  const crossing found = reach(wanted, false);
  if (found.bin == NONE) return limit;
  uint64_t sum = found.before;
  uint t = found.bin * in_bin;
  for (; t < limit && sum < wanted; ++t) {  // all invocations alike: a bin has few tokens
    const float x = value_at(t);
    if (rank_of(x) == rank) sum += whole(weight_of(x));
  }
  return t;
}
// Keeps the fewest of the largest tokens whose weights reach `wanted`, or, where they have weights, the part `mass` of all.
void keep(uint64_t wanted, float mass) {
  uint prefix = 0;  // the leading digits of the least rank
  uint64_t of_equal = 0;
  for (uint shift = 32; shift > 0;) {
    const uint before = shift, bits = min(DIGIT, shift);
    shift -= bits;
    clear_bins();
    for (uint t = gl_LocalInvocationID.x; t < V; t += WG) {
      const float x = value_at(t);
      const uint r = rank_of(x);
      if (remains(r, t) && (before == 32 || r >> before == prefix)) add_to((r >> shift) & ((1u << bits) - 1), weight_of(x));
    }
    add_parties(true);
    if (weighed && before == 32) wanted = part_of(all_parties(), mass);
    const crossing found = reach(wanted, true);
    if (found.bin == NONE) return;  // all of them are needed
    prefix = prefix << bits | found.bin;
    wanted -= found.before;
    of_equal = found.there;
  }
  const uint last = of_equal == wanted ? (prefix == least ? end : V) : first_ids(prefix, wanted);
  least = prefix;
  end = last;
}

uint drawn(uint p) {
  const uint lane = gl_LocalInvocationID.x, numbers = row * sampling_stride, words = row * key_stride;
  const float mass = f32_ref(sampling).at[numbers + 1], least_weight = f32_ref(sampling).at[numbers + 2];
  temperature = f32_ref(sampling).at[numbers];
  penalty = f32_ref(sampling).at[numbers + 3];
  penal = penalty > 0.0 && penalty != 1.0;
  weighed = false;
  end = V;
  if (penal) {
    for (uint i = lane; i < WORDS; i += WG) seen[i] = 0;
    barrier();
    for (uint i = lane; i <= p; i += WG) {
      const uint t = u32_ref(history).at[row * T + i];
      if (t < V) atomicOr(seen[t / 32], 1u << (t % 32));
    }
    barrier();
  }
  uint highest = 0, first = NONE;
  for (uint t = lane; t < V; t += WG) {
    const uint r = rank_of(value_at(t));
    if (r > highest) {
      highest = r;
      first = t;
    }
  }
  const uint rank = most_of_group(highest);
  if (rank == 0) return 0;
  first = ~most_of_group(highest == rank ? ~first : 0u);
  if (!(temperature > 0.0)) return first;
  top = value_at(first);
  const int k = load_int(key, words + 2);
  if (k > 0 && uint(k) < V) keep(uint64_t(k), 0.0);
  if (mass < 1.0) {
    weighed = true;
    keep(0, mass);
  }
  const uint64_t seed = uint64_t(u32_ref(key).at[words]) | uint64_t(u32_ref(key).at[words + 1]) << 32;
  const uint counter = p + 1 + u32_ref(key).at[words + 3];
  highest = 0;
  uint token = NONE;
  for (uint t = lane; t < V; t += WG) {
    const float x = value_at(t);
    if (!remains(rank_of(x), t)) continue;
    const float z = scaled(x, top, temperature);
    if (least_weight > 0.0 && !(exp_accurate(z) >= min(least_weight, 1.0))) continue;
    precise const float score = z + noise_of(philox(seed, t / 4, uint64_t(counter), stream)[t % 4]);
    const uint r = rank_of(score);
    if (r > highest) {
      highest = r;
      token = t;
    }
  }
  const uint best = most_of_group(highest), drawn = ~most_of_group(highest == best ? ~token : 0u);
  return best == 0 ? 0 : drawn;
}

void main() {
  row = group_index();
  if (row >= N) return;
  const int p = load_int(position, row);
  if (load_int(draw, row) < 0 || p < 0 || uint(p) >= T) return;
  barrier();  // everybody has read the position, and then the history, before they change
  const uint token = drawn(uint(p));
  if (gl_LocalInvocationID.x != 0) return;
  u32_ref(position).at[row] = uint(p) + 1;
  if (uint(p) + 1 < T) u32_ref(history).at[row * T + uint(p) + 1] = token;
  for (uint k = K - 1; k > 0; --k) u32_ref(recent).at[k * N + row] = u32_ref(recent).at[(k - 1) * N + row];
  u32_ref(recent).at[row] = token;
}
