// The tiles of portable attention: rows pass through two places in shared memory, queries in `left` and keys in `right`, and the weights between them
// take whichever is free. Nothing stays there, so that larger tiles fit: more multiply-adds per read of shared memory, at the cost of more reads of
// caches, which are in registers during the gemms. Mirrors vulkan::attention_tiles.
#include "pieces.glsl"
layout(constant_id = 8) const uint BQ = 32;       // queries of a tile, a multiple of 4 DOWN
layout(constant_id = 9) const uint BK = 32;       // keys of a tile, a multiple of 4, of ACROSS and of DOWN
layout(constant_id = 10) const uint ACROSS = 16;  // invocations along a tile's keys or columns, a multiple of 4
const uint DOWN = WG / ACROSS;                    // invocations along a tile's rows
const uint DEPTH = (D + 3) / 4;                   // vec4s in a row
const uint COLUMNS = (DEPTH + ACROSS - 1) / ACROSS, VECTORS = COLUMNS * ACROSS;  // vec4s that an invocation sums; padded so that all sum equally many
const uint PITCH = VECTORS + 1;                   // one vec4 of padding: eight adjacent rows start in different banks
const uint RQ = BQ / DOWN, RK = BK / ACROSS;      // scores per invocation
const uint QUERY_FETCHES = BQ * VECTORS / WG, KEY_FETCHES = BK * VECTORS / WG;
const uint QUERY_PITCH = BQ / 4 + 1, KEY_PITCH = BK / 4 + 1;  // pitches of weights: rows of queries, rows of keys

shared vec4 left[BQ * (PITCH > KEY_PITCH ? PITCH : KEY_PITCH)];
shared vec4 right[BK * (PITCH > QUERY_PITCH ? PITCH : QUERY_PITCH)];

// The rows of an invocation: groups of four adjacent queries, keys ACROSS apart.
#define QUERY(i) (((i) / 4) * 4 * DOWN + 4 * down + (i) % 4)
#define KEY(j) (across + (j)*ACROSS)

// Shared arrays cannot be passed to functions, hence macros.
// GET fetches a tile into registers, on its way to shared memory. Rows that do not start at multiples of four elements are read when the tile is
// stored there, because compilers are slow on unrolled single elements.
#define GET(held, FETCHED, base, type, stride, first, rows)                                        \
  if (WIDE) [[unroll]] for (uint i = 0; i < FETCHED; ++i) {                                        \
    const uint cell = t + i * WG;                                                                  \
    held[i] = piece(base, type, stride, (first) + cell / VECTORS, rows, 4 * (cell % VECTORS));     \
  }
#define SET(tile, FETCHED, held, base, type, stride, first, rows)                                  \
  if (WIDE) {                                                                                      \
    [[unroll]] for (uint i = 0; i < FETCHED; ++i) {                                                \
      const uint cell = t + i * WG;                                                                \
      tile[cell / VECTORS * PITCH + cell % VECTORS] = held[i];                                     \
    }                                                                                              \
  } else {                                                                                         \
    [[dont_unroll]] for (uint cell = t; cell < FETCHED * WG; cell += WG)                           \
      tile[cell / VECTORS * PITCH + cell % VECTORS] =                                              \
          piece(base, type, stride, (first) + cell / VECTORS, rows, 4 * (cell % VECTORS));         \
  }

// e^x for x at most a few units above 0. Drivers keep exp2 within 3 + 2 |x| ULP, which is at most 4 ULP of 1 where it matters; some give 2^-127 for
// -infinity, or a number for NaN.
float weight(float x) {
  const float two = x * LOG2E;
  return is_nan(two) ? two : two < -126.0 ? 0.0 : exp2(two);
}

// Marks which probabilities of a tile are kept, 1 or 0, at the places of the weights before these are computed: four neighbouring keys share their
// random words but belong to four invocations. After a barrier, the invocation that writes a weight reads its mark there.
vec4 marks(uint row, uint key) { return mix(vec4(0.0), vec4(1.0), kept(row, key / 4)); }
#define MARK_LEFT(row0, k0)                                                                        \
  for (uint cell = t; cell < BQ * (BK / 4); cell += WG)                                            \
    left[cell / (BK / 4) * KEY_PITCH + cell % (BK / 4)] = marks((row0) + cell / (BK / 4), (k0) + cell % (BK / 4) * 4);

// sum[i * RK + j] += query row i times key row j.
#define ADD_SCORES(sum)                                                                            \
  for (uint c = 0; c < DEPTH; ++c) {                                                               \
    vec4 x[RQ];                                                                                    \
    [[unroll]] for (uint i = 0; i < RQ; ++i) x[i] = left[QUERY(i) * PITCH + c];                    \
    [[unroll]] for (uint j = 0; j < RK; ++j) {                                                     \
      const vec4 z = right[KEY(j) * PITCH + c];                                                    \
      [[unroll]] for (uint i = 0; i < RQ; ++i) {                                                   \
        const float a = fma(x[i].y, z.y, fma(x[i].x, z.x, sum[i * RK + j]));                       \
        sum[i * RK + j] = fma(x[i].w, z.w, fma(x[i].z, z.z, a));                                   \
      }                                                                                            \
    }                                                                                              \
  }
// sum[i * COLUMNS + j] += row ROW(i) of `weights`, LENGTH of them, times the columns j of `tile`.
#define ADD_ROWS(sum, ROWS, ROW, weights, tile, LENGTH)                                            \
  for (uint r = 0; r < LENGTH; r += 4) {                                                           \
    vec4 w[ROWS];                                                                                  \
    [[unroll]] for (uint i = 0; i < ROWS; ++i) w[i] = weights[ROW(i) * (LENGTH / 4 + 1) + r / 4];  \
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {                                                \
      const uint c = r * PITCH + across + j * ACROSS;                                                           \
      const vec4 a0 = tile[c], a1 = tile[c + PITCH], a2 = tile[c + 2 * PITCH], a3 = tile[c + 3 * PITCH]; \
      [[unroll]] for (uint i = 0; i < ROWS; ++i) {                                                 \
        const uint n = i * COLUMNS + j;                                                            \
        sum[n] = fma(vec4(w[i].w), a3, fma(vec4(w[i].z), a2, fma(vec4(w[i].y), a1, fma(vec4(w[i].x), a0, sum[n])))); \
      }                                                                                            \
    }                                                                                              \
  }
