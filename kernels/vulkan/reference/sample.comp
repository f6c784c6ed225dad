#version 460
#extension GL_GOOGLE_include_directive : require
// Draws tokens, a row per workgroup. The likeliest tokens are found by their least member: bit by bit, the largest number at which the tokens from there on are
// as many, or weigh as much, as is wanted; then, among tokens of this number, the lowest ids. Bound by 32 passes over the row for each rule.
#include "access.glsl"
#include "rows/sample.glsl"

shared float scores[WG];
shared uint ids[WG];
shared vec2 sums[WG];

uint row;
bool penal;   // values are in scratch memory
uint least;   // the tokens that remain have a rank above this one, or this rank
uint end;     // and an id below this one
bool weighed;  // weights are those in scratch memory, not 1

void wait() { controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared, gl_SemanticsAcquireRelease); }

// The sum over the workgroup in every invocation, in a fixed order.
float sum_of_group(vec2 x) {
  const uint i = gl_LocalInvocationID.x;
  wait();
  sums[i] = x;
  wait();
  for (uint half_size = WG / 2; half_size > 0; half_size /= 2) {
    if (i < half_size) sums[i] = plus(sums[i], sums[i + half_size]);
    wait();
  }
  return value_of(sums[0]);
}
// The token of the largest score in every invocation, of equal scores the lowest; NONE where no invocation has a token. `score` becomes its score.
uint best_of_group(inout float score, uint id) {
  const uint i = gl_LocalInvocationID.x;
  wait();
  scores[i] = score;
  ids[i] = id;
  wait();
  for (uint half_size = WG / 2; half_size > 0; half_size /= 2) {
    if (i < half_size) {
      const float a = scores[i], b = scores[i + half_size];
      const uint k = ids[i], m = ids[i + half_size];
      if (m != NONE && (k == NONE || b > a || (b == a && m < k))) {
        scores[i] = b;
        ids[i] = m;
      }
    }
    wait();
  }
  score = scores[0];
  return ids[0];
}

float given(uint t) { return load(logits, row * logits_stride + t, LOGITS); }
float value_at(uint t) { return penal ? f32_ref(scratch).at[row * V + t] : given(t); }
bool remains(uint r, uint t) { return r != 0 && (r > least || (r == least && t < end)); }
float weight_of(uint t) { return weighed ? f32_ref(scratch).at[(N + row) * V + t] : 1.0; }

// Sums the weights of the remaining tokens with ranks from `from` on, or of those with this rank and ids below `below`.
float weight_from(uint from, uint below) {
  vec2 sum = vec2(0.0);
  for (uint t = gl_LocalInvocationID.x; t < V; t += WG) {
    const uint r = rank_of(value_at(t));
    if (remains(r, t) && (below == NONE ? r >= from : r == from && t < below)) sum = plus(sum, weight_of(t));
  }
  return sum_of_group(sum);
}
// Keeps the fewest of the largest tokens whose weights reach `wanted` > 0.
void keep(float wanted) {
  uint rank = 0, before = 0;  // `before`: ids below this one do not reach it
  for (uint bit = 0x80000000u; bit != 0; bit /= 2)
    if (weight_from(rank | bit, NONE) >= wanted) rank |= bit;
  const float above = rank == NONE ? 0.0 : weight_from(rank + 1, NONE);
  for (uint bit = 1u << 30; bit != 0; bit /= 2)
    if ((before | bit) < V) {
      precise const float reached = above + weight_from(rank, before | bit);
      if (reached < wanted) before |= bit;
    }
  least = rank;
  end = before + 1;
}
uint drawn(uint p) {
  const uint lane = gl_LocalInvocationID.x, numbers = row * sampling_stride, words = row * key_stride;
  const float temperature = f32_ref(sampling).at[numbers], mass = f32_ref(sampling).at[numbers + 1], least_weight = f32_ref(sampling).at[numbers + 2],
              penalty = f32_ref(sampling).at[numbers + 3];
  penal = false;
  least = 0;
  end = V;
  weighed = false;
  if (penalty > 0.0 && penalty != 1.0) {
    for (uint t = lane; t < V; t += WG) f32_ref(scratch).at[row * V + t] = given(t);
    wait();
    for (uint i = lane; i <= p; i += WG) {  // equal tokens get equal values
      const uint t = u32_ref(history).at[row * T + i];
      if (t >= V) continue;
      const float x = given(t);
      f32_ref(scratch).at[row * V + t] = x < 0.0 ? penalty * x : value_of(quotient(vec2(x, 0.0), penalty));
    }
    wait();
    penal = true;
  }
  float top = 0.0;
  uint first = NONE;
  for (uint t = lane; t < V; t += WG) {
    const float x = value_at(t);
    if (rank_of(x) != 0 && (first == NONE || x > top)) {
      top = x;
      first = t;
    }
  }
  first = best_of_group(top, first);
  if (first == NONE) return 0;
  if (!(temperature > 0.0)) return first;
  const int k = load_int(key, words + 2);
  if (k > 0 && uint(k) < V) keep(float(k));
  if (mass < 1.0) {
    vec2 sum = vec2(0.0);
    for (uint t = lane; t < V; t += WG) {
      const float x = value_at(t), w = remains(rank_of(x), t) ? exp_accurate(scaled(x, top, temperature)) : 0.0;
      f32_ref(scratch).at[(N + row) * V + t] = w;
      sum = plus(sum, w);
    }
    precise const float wanted = mass * sum_of_group(sum);
    weighed = true;
    keep(max(wanted, 1e-30));
  }
  const uint64_t seed = uint64_t(u32_ref(key).at[words]) | uint64_t(u32_ref(key).at[words + 1]) << 32;
  const uint counter = p + 1 + u32_ref(key).at[words + 3];
  float best = 0.0;
  uint token = NONE;
  for (uint t = lane; t < V; t += WG) {
    const float x = value_at(t);
    if (!remains(rank_of(x), t)) continue;
    const float z = scaled(x, top, temperature);
    if (least_weight > 0.0 && !(exp_accurate(z) >= min(least_weight, 1.0))) continue;
    precise const float score = z + noise_of(philox(seed, t / 4, uint64_t(counter), stream)[t % 4]);
    if (token == NONE || score > best) {
      best = score;
      token = t;
    }
  }
  return best_of_group(best, token);
}

void main() {
  row = group_index();
  if (row >= N) return;
  const int p = load_int(position, row);
  if (load_int(draw, row) < 0 || p < 0 || uint(p) >= T) return;
  wait();
  const uint token = drawn(uint(p));
  if (gl_LocalInvocationID.x != 0) return;
  u32_ref(position).at[row] = uint(p) + 1;
  if (uint(p) + 1 < T) u32_ref(history).at[row * T + uint(p) + 1] = token;
  for (uint k = K - 1; k > 0; --k) u32_ref(recent).at[k * N + row] = u32_ref(recent).at[(k - 1) * N + row];
  u32_ref(recent).at[row] = token;
}
