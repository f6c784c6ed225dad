// Portable attention: pieces of four elements, 0 outside the tensor.
layout(constant_id = 8) const uint BQ = 32;     // queries of a tile
layout(constant_id = 9) const uint BK = 32;     // keys of a tile
layout(constant_id = 10) const uint PIECES = 16;  // vec4 of a head row that a tile in shared memory holds: a multiple of 8
const uint ACROSS = 8;                           // invocations along a tile's keys or columns
const uint DOWN = WG / ACROSS;                   // and along its rows
const uint CHUNKS = (D + 4 * PIECES - 1) / (4 * PIECES);
const uint COLUMNS = PIECES / ACROSS;            // vec4 of a row chunk that an invocation sums
const uint DEPTH = CHUNKS == 1 ? (D + 3) / 4 : PIECES;  // vec4 of a row chunk that are not padding
// One vec4 of padding: eight rows side by side start in different banks.
const uint PITCH = PIECES + 1, WHOLE_PITCH = CHUNKS * PIECES + 1;

vec4 piece(uint64_t base, uint type, uint stride, uint row, uint rows, uint column) {
  if (row >= rows || column >= D) return vec4(0.0);
  const uint i = row * stride + column;
  if (WIDE) return load4(base, i / 4u, type);
  vec4 x = vec4(load(base, i, type), 0.0, 0.0, 0.0);
  if (column + 1u < D) x.y = load(base, i + 1u, type);
  if (column + 2u < D) x.z = load(base, i + 2u, type);
  if (column + 3u < D) x.w = load(base, i + 3u, type);
  return x;
}
void store_piece(uint64_t base, uint type, uint stride, uint row, uint rows, uint column, vec4 x) {
  if (row >= rows || column >= D) return;
  const uint i = row * stride + column;
  if (WIDE) {
    store4(base, i / 4u, type, x);
    return;
  }
  store(base, i, type, x.x);
  if (column + 1u < D) store(base, i + 1u, type, x.y);
  if (column + 2u < D) store(base, i + 2u, type, x.z);
  if (column + 3u < D) store(base, i + 3u, type, x.w);
}

// e^x for x that is at most a few units above 0. Drivers keep exp2 within 3 + 2 |x| ULP, which is at most 4 ULP of 1 where it matters; some
// give 2^-127 for -infinity, or a number for NaN.
float weight(float x) {
  const float two = x * LOG2E;
  return is_nan(two) ? two : two < -126.0 ? 0.0 : exp2(two);
}

// Which probabilities of a tile are kept, 1 or 0, goes to where the weights will be before they are: four neighbouring keys share their random
// words, but lie in four invocations. The one that will write a weight reads it back there; a barrier lies between.
vec4 marks(uint row, uint key) { return mix(vec4(0.0), vec4(1.0), kept(row, key / 4)); }

// Shared arrays cannot be passed to functions, hence macros. sum[i * RK + j] += row i of `left` times row j of `right`, over one chunk of the
// rows; LEFT(i) and RIGHT(j) say where they start.
#define ADD_SCORES(sum, left, LEFT, right, RIGHT)                                   \
  for (uint c = 0; c < DEPTH; ++c) {                                                \
    vec4 x[RQ];                                                                     \
    [[unroll]] for (uint i = 0; i < RQ; ++i) x[i] = left[LEFT(down + i * DOWN) + c]; \
    [[unroll]] for (uint j = 0; j < RK; ++j) {                                      \
      const vec4 z = right[RIGHT(across + j * ACROSS) + c];                         \
      [[unroll]] for (uint i = 0; i < RQ; ++i) {                                    \
        const float a = fma(x[i].y, z.y, fma(x[i].x, z.x, sum[i * RK + j]));        \
        sum[i * RK + j] = fma(x[i].w, z.w, fma(x[i].z, z.z, a));                    \
      }                                                                             \
    }                                                                               \
  }
#define IN_TILE(row) ((row)*PITCH)
#define IN_CHUNK(row) ((row)*WHOLE_PITCH + chunk * PIECES)
// sum[(i * CHUNKS + chunk) * COLUMNS + j] += row i of `weights` times the columns j of `tile`: ROWS rows of the result, LENGTH of the tile.
#define ADD_ROWS(sum, ROWS, LENGTH)                                                                                             \
  for (uint r = 0; r < LENGTH; r += 4) {                                                                                        \
    vec4 w[ROWS];                                                                                                               \
    [[unroll]] for (uint i = 0; i < ROWS; ++i) w[i] = weights[(down + i * DOWN) * (LENGTH / 4 + 1) + r / 4];                    \
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {                                                                             \
      const uint c = r * PITCH + across + j * ACROSS;                                                                           \
      const vec4 a0 = tile[c], a1 = tile[c + PITCH], a2 = tile[c + 2 * PITCH], a3 = tile[c + 3 * PITCH];                        \
      [[unroll]] for (uint i = 0; i < ROWS; ++i) {                                                                              \
        const uint n = (i * CHUNKS + chunk) * COLUMNS + j;                                                                      \
        sum[n] = fma(vec4(w[i].w), a3, fma(vec4(w[i].z), a2, fma(vec4(w[i].y), a1, fma(vec4(w[i].x), a0, sum[n]))));            \
      }                                                                                                                         \
    }                                                                                                                           \
  }
