#version 460
#extension GL_GOOGLE_include_directive : require
// into[id] += dy[position] over pairs (id, position) sorted by id, then position: the rows of one id are added one after another, so that the sum has
// the bits of a loop. Bound by bytes, and for frequent ids by the latency of a long sum. A workgroup owns the runs of equal ids that start in its
// window of pairs, eight rows in flight. Runs longer than LONG have workgroups of their own, one for each strip of 32 columns: all invocations fetch
// rows into a tile while 32 of them add the previous tile. These workgroups search the pairs in windows of SEARCH.
#include "access.glsl"

layout(constant_id = 2) const bool WIDE = true;  // C and all addresses are multiples of four elements
layout(constant_id = 3) const uint DY = F32;

layout(push_constant, scalar) uniform push {
  uint64_t into;   // (V, C) f32
  uint64_t dy;     // (n, C)
  uint64_t pairs;  // (n)
  uint n, V, C;
  uint searches;   // workgroups for long runs, one per strip of columns
};

const uint WINDOW = 16, FLIGHT = 8, LONG = 128, SEARCH = 512, STRIP = 32;
const uint DOWN = WG / 8, AIR = 4, ROWS = AIR * DOWN;  // sizes of a tile
const uint NONE = 0xffffffffu;                         // no id

const uint NEAR = WINDOW + LONG + 2;
shared uvec2 near[NEAR];  // from the pair before the window to the one behind the longest short run that starts in it
shared float tile[ROWS * STRIP];
shared uint runs[SEARCH / LONG], found, run_end;

uint blocks() { return (C + 3) / 4; }
uvec2 pair_at(uint i) { return i < n ? u32x2_ref(pairs).at[i] : uvec2(NONE, 0); }
vec4 row_block(uint64_t base, uint row, uint b, uint t) {
  if (WIDE) return load4(base, row * (C / 4) + b, t);
  vec4 x = vec4(0.0);
  [[unroll]] for (uint j = 0; j < 4; ++j)
    if (4 * b + j < C) x[j] = load(base, row * C + 4 * b + j, t);
  return x;
}
void store_block(uint row, uint b, vec4 x) {
  if (WIDE) store4(into, row * (C / 4) + b, F32, x);
  else
    [[unroll]] for (uint j = 0; j < 4; ++j)
      if (4 * b + j < C) f32_ref(into).at[row * C + 4 * b + j] = x[j];
}

void short_runs(uint window, uint b) {
  const uint start = window * WINDOW;
  const bool there = b < blocks();
  for (uint k = gl_LocalInvocationID.x; k < NEAR; k += WG) near[k] = start + k > 0 ? pair_at(start + k - 1) : uvec2(NONE, 0);
  barrier();
  vec4 sum = vec4(0.0);
  bool mine = false;  // whether the last run is short and started in this window: it may continue behind it
  for (uint k = 0; k < WINDOW || (k < WINDOW + LONG && mine); k += FLIGHT) {
    vec4 g[FLIGHT], old[FLIGHT];
    bool taken[FLIGHT];
    [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
      const uvec2 pair = near[k + j + 1];
      const bool begins = near[k + j].x != pair.x;
      if (begins) mine = k < WINDOW && pair.x < V && near[k + j + LONG + 1].x != pair.x;
      taken[j] = mine && there;
      if (taken[j]) g[j] = row_block(dy, pair.y, b, DY);
      if (taken[j] && begins) old[j] = row_block(into, pair.x, b, F32);
    }
    [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
      if (!taken[j]) continue;
      const uint id = near[k + j + 1].x;
      if (near[k + j].x != id) sum = old[j];
      sum += g[j];
      if (near[k + j + 2].x != id) store_block(id, b, sum);
    }
  }
}

void add_long_run(uint first, uint strip) {
  const uint lane = gl_LocalInvocationID.x, across = lane % 8, down = lane / 8, b = strip * 8 + across, c = strip * STRIP + lane;
  const uint id = pair_at(first).x;
  vec4 g[AIR];
  uvec2 pair[AIR], next[AIR];
  [[unroll]] for (uint q = 0; q < AIR; ++q) {
    pair[q] = pair_at(first + q * DOWN + down);
    next[q] = pair_at(first + ROWS + q * DOWN + down);
  }
  [[unroll]] for (uint q = 0; q < AIR; ++q)
    if (pair[q].x == id && b < blocks()) g[q] = row_block(dy, pair[q].y, b, DY);
  const bool adds = lane < STRIP && c < C;
  float sum = adds ? f32_ref(into).at[id * C + c] : 0.0;
  if (lane == 0) run_end = NONE;
  barrier();
  for (uint from = first;; from += ROWS) {
    [[unroll]] for (uint q = 0; q < AIR; ++q) {
      const uint row = q * DOWN + down;
      if (pair[q].x != id) atomicMin(run_end, from + row);
      [[unroll]] for (uint j = 0; j < 4; ++j) tile[row * STRIP + 4 * across + j] = g[q][j];
    }
    barrier();
    const uint rows = min(ROWS, run_end - from);
    const bool goes_on = run_end > from + ROWS;
    if (goes_on) {
      [[unroll]] for (uint q = 0; q < AIR; ++q) {
        pair[q] = next[q];
        if (pair[q].x == id && b < blocks()) g[q] = row_block(dy, pair[q].y, b, DY);
        next[q] = pair_at(from + 2 * ROWS + q * DOWN + down);
      }
    }
    if (lane < STRIP)
      for (uint row = 0; row < ROWS; row += AIR) {  // every invocation makes the same number of steps
        float v[AIR];
        [[unroll]] for (uint j = 0; j < AIR; ++j) v[j] = tile[(row + j) * STRIP + lane];
        [[unroll]] for (uint j = 0; j < AIR; ++j) sum = row + j < rows ? sum + v[j] : sum;
      }
    barrier();
    if (!goes_on) break;
  }
  if (adds) f32_ref(into).at[id * C + c] = sum;
}

void long_runs(uint search, uint strip) {
  const uint lane = gl_LocalInvocationID.x;
  if (lane == 0) found = 0;
  barrier();
  for (uint k = search * SEARCH + lane; k < min(n, (search + 1) * SEARCH); k += WG) {
    const uint id = pair_at(k).x;
    if (id < V && pair_at(k + LONG).x == id && (k == 0 || pair_at(k - 1).x != id)) runs[atomicAdd(found, 1)] = k;
  }
  barrier();
  const uint all = found;
  for (uint r = 0; r < all; ++r) add_long_run(runs[r], strip);  // runs of different ids may come in any order
}

void main() {
  const uint group = group_index();
  if (group < searches) {
    const uint strips = (C + STRIP - 1) / STRIP;
    long_runs(group / strips, group % strips);
  } else {
    const uint chunks = (blocks() + WG - 1) / WG, window = (group - searches) / chunks;
    if (window * WINDOW < n) short_runs(window, (group - searches) % chunks * WG + gl_LocalInvocationID.x);
  }
}
