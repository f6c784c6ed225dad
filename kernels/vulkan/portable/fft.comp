#version 460
#extension GL_GOOGLE_include_directive : require
// Fourier transforms of 2^LOG_R points in 2^LOG_C columns at once in shared memory: whole rows of at most 4096 points, or one pass over the columns
// of longer rows. Bound by bytes: each pass reads and writes a row once.
//
// Stockham passes of radix 8 (the last one 4 or 2) with 8 points per invocation in registers and one buffer: all read, barrier, all write. The buffer
// is swizzled so that at most two lanes of the strided writes in early passes meet in a bank. Rows whose length is not a power of two are convolved
// with a chirp (Bluestein), in one workgroup if the convolution has at most 4096 points. In a pass over columns, `s` points of the result are already
// combined: column q + s p has x[q + s (p + m r)], r < R, and makes y[q + s (R p + k)], times e^(-2 pi i p k / (R m)).
#include "access.glsl"
#include "math/fourier.glsl"

layout(constant_id = 2) const uint LOG_R = 3;
layout(constant_id = 3) const uint LOG_C = 6;
layout(constant_id = 4) const uint X = F32;
layout(constant_id = 5) const uint Y = F32;
layout(constant_id = 6) const uint SOURCE = 0;
layout(constant_id = 7) const uint TARGET = 0;
layout(constant_id = 8) const bool COLUMNS = false;    // columns of rows of 2^log_m points; otherwise whole rows
layout(constant_id = 9) const bool CHIRP_IN = false;   // Bluestein: before the first pass of the convolution, and after its last
layout(constant_id = 10) const bool CHIRP_OUT = false;
layout(constant_id = 11) const bool CONVOLVE = false;  // the whole convolution runs in this workgroup
layout(constant_id = 12) const bool X_ALIGNED = true;  // pairs are aligned to words
layout(constant_id = 13) const bool Y_ALIGNED = true;

const uint FROM_PAIRS = 0, FROM_NUMBERS = 1, FROM_HALF_BINS = 2, FROM_BINS = 3, FROM_CHIRP = 4;  // vulkan::fourier::source
const uint TO_PAIRS = 0, TO_NUMBERS = 1, TO_HALF_BINS = 2, TO_BINS = 3, TO_SPECTRUM = 4;         // vulkan::fourier::target

layout(push_constant, scalar) uniform push {
  uint64_t x;                       // (rows, in_row) pairs or numbers
  uint64_t y;                       // (rows, out_row) pairs or numbers
  uint64_t roots;                   // (4096) e^(-2 pi i t / 4096)
  uint64_t circle;                  // twiddle factors with D = 2 points
  uint64_t twiddles;                   // twiddle factors with D = 2^log_twiddles, for passes over columns
  uint64_t spectrum;                // (2^log_m): spectrum of the chirp
  float x_inner, x_outer;           // factors of inner and outer bins that are read ...
  float y_inner, y_outer;           // ... and that are written
  uint groups_in_all, rows, in_row, out_row;
  uint points;                      // points of the requested transform
  uint given, kept;                 // points of a row that are read (the rest is 0), and that are written
  uint swap_in, swap_out;           // for the inverse: swap in the first and in the last pass
  uint log_m, log_s;
  uint circle_bits, twiddle_bits, log_twiddles;
};

const uint R = 1u << LOG_R, C = 1u << LOG_C, POINTS = R * C, TASKS = POINTS / (8 * WG);

shared vec2 z[POINTS];

// Returns the swizzled place; it repeats every 128 points.
uint place(uint column, uint i) {
  const uint at = COLUMNS ? (i << LOG_C) + column : (column << LOG_R) + i;
  return at ^ ((at >> 4) & 7u) ^ ((at >> 3) & 8u);
}
vec2 root(uint t) { return vec2_ref(roots).at[t << (12 - LOG_R)]; }  // e^(-2 pi i t / R)
vec2 chirp(uint n) {                                                  // e^(-pi i n^2 / points)
  const uint D = 2 * points;
  return twiddle(circle, circle_bits, n < 65536 ? n * n % D : uint(uint64_t(n) * n % D));
}

vec2 source(uint row, uint n) {
  if (SOURCE == FROM_CHIRP) {  // the chirp runs around the circle in both directions
    const uint M = 1u << log_m, near = n < points ? n : M - n;
    const vec2 c = near < points ? chirp(near) : vec2(0.0);
    return vec2(c.x, -c.y);
  }
  if (n >= given) return vec2(0.0);
  const uint at = row * in_row;
  if (SOURCE == FROM_NUMBERS) return vec2(load(x, at + n, X), 0.0);
  const bool mirrored = SOURCE == FROM_BINS && 2 * n > points;
  const vec2 a = load_pair(x, at + (mirrored ? points - n : n), X, X_ALIGNED);
  if (SOURCE == FROM_PAIRS) return a;
  if (SOURCE == FROM_BINS) return n == 0 ? vec2(x_outer * a.x, 0.0) : x_inner * vec2(a.x, mirrored ? -a.y : a.y);
  const vec2 b = load_pair(x, at + points - n, X, X_ALIGNED);
  return n == 0 ? x_outer * vec2(a.x + b.x, a.x - b.x) : x_inner * half_of(a, b, twiddle(circle, circle_bits, n));
}

// Returns point k of a column as the transform leaves it; it is point `at` of the row.
vec2 result(uint column, uint k, uint at) {
  const vec2 v = z[place(column, k)];
  return swapped(CHIRP_OUT ? times(v.yx, chirp(at)) : v, swap_out != 0);  // a convolution ends with an inverse transform
}
void target(uint row, uint column, uint k, uint at) {
  if (at >= kept) return;
  const uint to = row * out_row;
  vec2 v = result(column, k, at);
  if (TARGET == TO_NUMBERS) {
    store(y, to + at, Y, y_inner * v.x);
    return;
  }
  if (COLUMNS && log_s + LOG_R < log_m) {  // all but the last pass
    const uint p = (at - (k << log_s)) >> (log_s + LOG_R);
    v = times(v, twiddle(twiddles, twiddle_bits, (p * k) << (log_twiddles + log_s - log_m)));
  }
  if (TARGET == TO_SPECTRUM) v = times(v, vec2_ref(spectrum).at[at]);
  if (TARGET == TO_HALF_BINS && k == 0) store_pair(y, to + points, Y, Y_ALIGNED, vec2(y_outer * (v.x - v.y), 0.0));
  if (TARGET == TO_HALF_BINS && k > 0)
    v = y_inner * bin_of(v, result(column, points - k, points - k), twiddle(circle, circle_bits, k));
  else if (at == 0 && (TARGET == TO_HALF_BINS || TARGET == TO_BINS)) v = vec2(y_outer * (TARGET == TO_BINS ? v.x : v.x + v.y), 0.0);
  else v *= y_inner;
  store_pair(y, to + at, Y, Y_ALIGNED, v);
}

void dft2(inout vec2 a, inout vec2 b) {
  const vec2 d = a - b;
  a += b;
  b = d;
}
void dft4(inout vec2 a, inout vec2 b, inout vec2 c, inout vec2 d) {
  dft2(a, c);
  dft2(b, d);
  d = vec2(d.y, -d.x);
  dft2(a, b);
  dft2(c, d);
  const vec2 second = b;  // the results come in the order 0, 2, 1, 3
  b = c;
  c = second;
}
void dft8(inout vec2 a, inout vec2 b, inout vec2 c, inout vec2 d, inout vec2 e, inout vec2 f, inout vec2 g, inout vec2 h) {
  dft4(a, c, e, g);
  dft4(b, d, f, h);
  const float half_root = 0.70710678118654752;
  d = half_root * vec2(d.x + d.y, d.y - d.x);
  f = vec2(f.y, -f.x);
  h = half_root * vec2(h.y - h.x, -h.x - h.y);
  const vec2 odd[4] = {b, d, f, h}, even[4] = {a, c, e, g};
  a = even[0] + odd[0];
  b = even[1] + odd[1];
  c = even[2] + odd[2];
  d = even[3] + odd[3];
  e = even[0] - odd[0];
  f = even[1] - odd[1];
  g = even[2] - odd[2];
  h = even[3] - odd[3];
}

// Runs one pass of radix 2^lr (a literal) over every column; 2^ls points of each are already combined.
void stage(uint lr, uint ls) {
  const uint radix = 1u << lr, each = 8u >> lr;  // butterflies per task
  vec2 v[8 * TASKS];
  [[unroll]] for (uint t = 0; t < TASKS; ++t) {
    const uint o = 8 * t;
    [[unroll]] for (uint b = 0; b < each; ++b) {
      const uint f = gl_LocalInvocationID.x + WG * (t * each + b);
      const uint column = COLUMNS ? f & (C - 1) : f >> (LOG_R - lr), i = COLUMNS ? f >> LOG_C : f & ((R >> lr) - 1);
      const uint start = place(column, i), step = COLUMNS ? POINTS >> lr : R >> lr;
      [[unroll]] for (uint r = 0; r < radix; ++r)
        v[o + b * radix + r] = z[step % 128 == 0 ? start + r * step : place(column, i + (r << (LOG_R - lr)))];
    }
    if (lr == 3) dft8(v[o], v[o + 1], v[o + 2], v[o + 3], v[o + 4], v[o + 5], v[o + 6], v[o + 7]);
    else if (lr == 2) {
      dft4(v[o], v[o + 1], v[o + 2], v[o + 3]);
      dft4(v[o + 4], v[o + 5], v[o + 6], v[o + 7]);
    } else {
      dft2(v[o], v[o + 1]);
      dft2(v[o + 2], v[o + 3]);
      dft2(v[o + 4], v[o + 5]);
      dft2(v[o + 6], v[o + 7]);
    }
  }
  barrier();
  [[unroll]] for (uint t = 0; t < TASKS; ++t)
    [[unroll]] for (uint b = 0; b < each; ++b) {
      const uint f = gl_LocalInvocationID.x + WG * (t * each + b);
      const uint column = COLUMNS ? f & (C - 1) : f >> (LOG_R - lr), i = COLUMNS ? f >> LOG_C : f & ((R >> lr) - 1);
      const uint p = i >> ls, to = (p << (ls + lr)) + (i & ((1u << ls) - 1u));
      [[unroll]] for (uint k = 0; k < radix; ++k) {
        vec2 w = v[8 * t + b * radix + k];
        if (k > 0 && ls + lr < LOG_R) w = times(w, root((p * k) << ls));
        z[place(column, to + (k << ls))] = w;
      }
    }
  barrier();
}
void transform() {
  [[dont_unroll]] for (uint ls = 0; ls + 3 <= LOG_R; ls += 3) stage(3, ls);
  if (LOG_R % 3 == 2) stage(2, LOG_R - 2);
  if (LOG_R % 3 == 1) stage(1, LOG_R - 1);
}

void main() {
  const uint g = group_index(), log_columns = log_m - LOG_R;
  if (g >= groups_in_all) return;
  const uint row = COLUMNS ? g >> (log_columns - LOG_C) : g << LOG_C;             // the row of column 0
  const uint first = COLUMNS ? (g << LOG_C) & ((1u << log_columns) - 1u) : 0;  // the index of column 0 in its row
  for (uint e = gl_LocalInvocationID.x; e < POINTS; e += WG) {
    const uint column = COLUMNS ? e & (C - 1) : e >> LOG_R, r = COLUMNS ? e >> LOG_C : e & (R - 1);
    const uint from = COLUMNS ? row : row + column, n = first + (COLUMNS ? column : 0) + (r << log_columns);
    vec2 v = vec2(0.0);
    if (from < rows) v = swapped(source(from, n), swap_in != 0);
    if (CHIRP_IN && n < given) v = times(v, chirp(n));
    z[place(column, r)] = v;
  }
  barrier();
  [[dont_unroll]] for (uint round = 0; round < (CONVOLVE ? 2 : 1); ++round) {
    if (round > 0) {
      for (uint e = gl_LocalInvocationID.x; e < POINTS; e += WG) {
        const uint at = place(e >> LOG_R, e & (R - 1));
        z[at] = times(z[at], vec2_ref(spectrum).at[e & (R - 1)]).yx;
      }
      barrier();
    }
    transform();
  }
  const bool across = COLUMNS && log_s > 0;  // adjacent results are adjacent columns; otherwise they are points of one column
  for (uint e = gl_LocalInvocationID.x; e < POINTS; e += WG) {
    const uint column = across ? e & (C - 1) : e >> LOG_R, k = across ? e >> LOG_C : e & (R - 1);
    const uint to = COLUMNS ? row : row + column, at = first + (COLUMNS ? column : 0);
    const uint q = at & ((1u << log_s) - 1u), p = at >> log_s;
    if (to < rows) target(to, column, k, q + (k << log_s) + (p << (log_s + LOG_R)));
  }
}
