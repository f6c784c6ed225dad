// The interpreter of fused bodies: the epilogue of a gemm, and element-wise steps of the reference set.
//
// Specialization constants alone give the program, so that drivers fold it to straight code. How a kernel takes an epilogue:
//   #define BODY_FIRST_ID 20      // its own constants are below; this file adds 92 (fused_body::add_to in body.hpp)
//   #include "body.glsl"          // after access.glsl
//   uint64_t body;                // in the push constants: the table of addresses (fused_body::table)
//   if (BODY_COUNT == 0u) store(...); else body_run(body, element, product);
//   if (BODY_WIDE) body_run4(body, element, products);  // where allowed, four at a time: element a multiple of 4
// A module has the code of every op in each of its 16 places, and drivers read all of it before they fold it (0.3 s in lavapipe): compile variants
// with -DBODY_MICROS=1 and 4 for bodies of at most so many instructions, and one without any epilogue.
// `element` is the row-major index of the element in the dense outputs; `product` is the element of the host's result, already rounded to its format.
// Every result is rounded to its format before the next instruction reads it, and nothing is contracted, so fused and unfused results are equal.
// All operands are read before the first result is stored, so outputs may overwrite operands.
#include "math/math.glsl"

#ifndef BODY_MICROS
#define BODY_MICROS 16
#endif

#define BODY_CONSTANT(id, name) layout(constant_id = BODY_FIRST_ID + id) const uint name = 0;
BODY_CONSTANT(0, BODY_COUNT)      // instructions
BODY_CONSTANT(1, BODY_READS)      // bit k: operand k is read
BODY_CONSTANT(2, BODY_IN_TYPES)   // formats, 4 bits each
BODY_CONSTANT(3, BODY_OUT_TYPES)  // 4 bits each
BODY_CONSTANT(4, BODY_OUTPUTS)    // bits 0 to 7: number of outputs; bit 8 + k: add to output k
BODY_CONSTANT(5, BODY_QUADS)      // bit k: body_run4 reads operand k by one access of four; bit 8 + k: one element serves all four; bit 16: body_run4 may be called
BODY_CONSTANT(6, BODY_RANK)       // merged axes
// The sizes of the merged axes, innermost first, without the outermost one.
BODY_CONSTANT(7, BODY_D0) BODY_CONSTANT(8, BODY_D1) BODY_CONSTANT(9, BODY_D2) BODY_CONSTANT(10, BODY_D3) BODY_CONSTANT(11, BODY_D4)
// Strides by operand, innermost axis first.
BODY_CONSTANT(12, BODY_S00) BODY_CONSTANT(13, BODY_S01) BODY_CONSTANT(14, BODY_S02) BODY_CONSTANT(15, BODY_S03) BODY_CONSTANT(16, BODY_S04) BODY_CONSTANT(17, BODY_S05)
BODY_CONSTANT(18, BODY_S10) BODY_CONSTANT(19, BODY_S11) BODY_CONSTANT(20, BODY_S12) BODY_CONSTANT(21, BODY_S13) BODY_CONSTANT(22, BODY_S14) BODY_CONSTANT(23, BODY_S15)
BODY_CONSTANT(24, BODY_S20) BODY_CONSTANT(25, BODY_S21) BODY_CONSTANT(26, BODY_S22) BODY_CONSTANT(27, BODY_S23) BODY_CONSTANT(28, BODY_S24) BODY_CONSTANT(29, BODY_S25)
BODY_CONSTANT(30, BODY_S30) BODY_CONSTANT(31, BODY_S31) BODY_CONSTANT(32, BODY_S32) BODY_CONSTANT(33, BODY_S33) BODY_CONSTANT(34, BODY_S34) BODY_CONSTANT(35, BODY_S35)
BODY_CONSTANT(36, BODY_S40) BODY_CONSTANT(37, BODY_S41) BODY_CONSTANT(38, BODY_S42) BODY_CONSTANT(39, BODY_S43) BODY_CONSTANT(40, BODY_S44) BODY_CONSTANT(41, BODY_S45)
BODY_CONSTANT(42, BODY_S50) BODY_CONSTANT(43, BODY_S51) BODY_CONSTANT(44, BODY_S52) BODY_CONSTANT(45, BODY_S53) BODY_CONSTANT(46, BODY_S54) BODY_CONSTANT(47, BODY_S55)
BODY_CONSTANT(48, BODY_S60) BODY_CONSTANT(49, BODY_S61) BODY_CONSTANT(50, BODY_S62) BODY_CONSTANT(51, BODY_S63) BODY_CONSTANT(52, BODY_S64) BODY_CONSTANT(53, BODY_S65)
BODY_CONSTANT(54, BODY_S70) BODY_CONSTANT(55, BODY_S71) BODY_CONSTANT(56, BODY_S72) BODY_CONSTANT(57, BODY_S73) BODY_CONSTANT(58, BODY_S74) BODY_CONSTANT(59, BODY_S75)
// Instructions: bits 0 to 7 number, 8 to 11 format, 12 to 14 output + 1, operands from bits 15, 20 and 25; then the bits of the constant k.
BODY_CONSTANT(60, BODY_I0) BODY_CONSTANT(61, BODY_K0) BODY_CONSTANT(62, BODY_I1) BODY_CONSTANT(63, BODY_K1) BODY_CONSTANT(64, BODY_I2) BODY_CONSTANT(65, BODY_K2) BODY_CONSTANT(66, BODY_I3) BODY_CONSTANT(67, BODY_K3)
BODY_CONSTANT(68, BODY_I4) BODY_CONSTANT(69, BODY_K4) BODY_CONSTANT(70, BODY_I5) BODY_CONSTANT(71, BODY_K5) BODY_CONSTANT(72, BODY_I6) BODY_CONSTANT(73, BODY_K6) BODY_CONSTANT(74, BODY_I7) BODY_CONSTANT(75, BODY_K7)
BODY_CONSTANT(76, BODY_I8) BODY_CONSTANT(77, BODY_K8) BODY_CONSTANT(78, BODY_I9) BODY_CONSTANT(79, BODY_K9) BODY_CONSTANT(80, BODY_I10) BODY_CONSTANT(81, BODY_K10) BODY_CONSTANT(82, BODY_I11) BODY_CONSTANT(83, BODY_K11)
BODY_CONSTANT(84, BODY_I12) BODY_CONSTANT(85, BODY_K12) BODY_CONSTANT(86, BODY_I13) BODY_CONSTANT(87, BODY_K13) BODY_CONSTANT(88, BODY_I14) BODY_CONSTANT(89, BODY_K14) BODY_CONSTANT(90, BODY_I15) BODY_CONSTANT(91, BODY_K15)
#undef BODY_CONSTANT
#define BODY_WIDE ((BODY_QUADS >> 16) != 0u)

// Values are numbered: operands 0 to 7, results 8 to 23, the host's result 24.
#define BODY_STEP(j, instruction, k)                                                                                                 \
  if (BODY_COUNT > j) {                                                                                                              \
    v[8 + j] = rounded(result_of(instruction & 255u, v[(instruction >> 15) & 31u], v[(instruction >> 20) & 31u], v[instruction >> 25], \
                                 uintBitsToFloat(k)),                                                                                \
                       (instruction >> 8) & 15u);                                                                                    \
    if (((instruction >> 12) & 7u) != 0u) y[((instruction >> 12) & 7u) - 1u] = v[8 + j];                                             \
  }
void body_evaluate(float x[8], float product, out float y[6]) {
  precise float v[25];
  [[unroll]] for (uint k = 0u; k < 8u; ++k) v[k] = x[k];
  v[24] = product;
  BODY_STEP(0, BODY_I0, BODY_K0)
#if BODY_MICROS > 1
  BODY_STEP(1, BODY_I1, BODY_K1)
  BODY_STEP(2, BODY_I2, BODY_K2)
  BODY_STEP(3, BODY_I3, BODY_K3)
#endif
#if BODY_MICROS > 4
  BODY_STEP(4, BODY_I4, BODY_K4)
  BODY_STEP(5, BODY_I5, BODY_K5)
  BODY_STEP(6, BODY_I6, BODY_K6)
  BODY_STEP(7, BODY_I7, BODY_K7)
  BODY_STEP(8, BODY_I8, BODY_K8)
  BODY_STEP(9, BODY_I9, BODY_K9)
  BODY_STEP(10, BODY_I10, BODY_K10)
  BODY_STEP(11, BODY_I11, BODY_K11)
  BODY_STEP(12, BODY_I12, BODY_K12)
  BODY_STEP(13, BODY_I13, BODY_K13)
  BODY_STEP(14, BODY_I14, BODY_K14)
  BODY_STEP(15, BODY_I15, BODY_K15)
#endif
}

// Computes the offset of element `element` of the outputs in each operand.
void body_offsets(uint element, out uint at[8]) {
  uint i[6];
  i[0] = element;
  if (BODY_RANK > 1u) { i[1] = i[0] / BODY_D0; i[0] -= i[1] * BODY_D0; }
  if (BODY_RANK > 2u) { i[2] = i[1] / BODY_D1; i[1] -= i[2] * BODY_D1; }
  if (BODY_RANK > 3u) { i[3] = i[2] / BODY_D2; i[2] -= i[3] * BODY_D2; }
  if (BODY_RANK > 4u) { i[4] = i[3] / BODY_D3; i[3] -= i[4] * BODY_D3; }
  if (BODY_RANK > 5u) { i[5] = i[4] / BODY_D4; i[4] -= i[5] * BODY_D4; }
#define BODY_OFFSET(k, s0, s1, s2, s3, s4, s5)     \
  if (((BODY_READS >> k) & 1u) != 0u) {            \
    at[k] = i[0] * s0;                             \
    if (BODY_RANK > 1u) at[k] += i[1] * s1;        \
    if (BODY_RANK > 2u) at[k] += i[2] * s2;        \
    if (BODY_RANK > 3u) at[k] += i[3] * s3;        \
    if (BODY_RANK > 4u) at[k] += i[4] * s4;        \
    if (BODY_RANK > 5u) at[k] += i[5] * s5;        \
  }
  BODY_OFFSET(0, BODY_S00, BODY_S01, BODY_S02, BODY_S03, BODY_S04, BODY_S05)
  BODY_OFFSET(1, BODY_S10, BODY_S11, BODY_S12, BODY_S13, BODY_S14, BODY_S15)
  BODY_OFFSET(2, BODY_S20, BODY_S21, BODY_S22, BODY_S23, BODY_S24, BODY_S25)
  BODY_OFFSET(3, BODY_S30, BODY_S31, BODY_S32, BODY_S33, BODY_S34, BODY_S35)
  BODY_OFFSET(4, BODY_S40, BODY_S41, BODY_S42, BODY_S43, BODY_S44, BODY_S45)
  BODY_OFFSET(5, BODY_S50, BODY_S51, BODY_S52, BODY_S53, BODY_S54, BODY_S55)
  BODY_OFFSET(6, BODY_S60, BODY_S61, BODY_S62, BODY_S63, BODY_S64, BODY_S65)
  BODY_OFFSET(7, BODY_S70, BODY_S71, BODY_S72, BODY_S73, BODY_S74, BODY_S75)
#undef BODY_OFFSET
}

uint body_in_type(uint k) { return (BODY_IN_TYPES >> (4u * k)) & 15u; }
uint body_out_type(uint k) { return (BODY_OUT_TYPES >> (4u * k)) & 15u; }
bool body_adds(uint k) { return ((BODY_OUTPUTS >> (8u + k)) & 1u) != 0u; }

// Where operand k and output k are. A kernel that has some of these addresses at hand defines them itself, which saves the wait for the table.
#ifndef BODY_OPERAND
#define BODY_OPERAND(table, k) u64_ref(table).at[k]
#endif
#ifndef BODY_OUTPUT
#define BODY_OUTPUT(table, k) u64_ref(table).at[8u + k]
#endif

// body_run in two parts, so that a kernel can read the operands before it has the product.
void body_fetch(uint64_t table, uint element, out float x[8]) {
  uint at[8];
  body_offsets(element, at);
  [[unroll]] for (uint k = 0u; k < 8u; ++k)
    if (((BODY_READS >> k) & 1u) != 0u) x[k] = load(BODY_OPERAND(table, k), at[k], body_in_type(k));
}
void body_finish(uint64_t table, uint element, float x[8], float product) {
  float y[6];
  body_evaluate(x, product, y);
  [[unroll]] for (uint k = 0u; k < 6u; ++k)
    if (k < (BODY_OUTPUTS & 255u)) {
      const uint64_t to = BODY_OUTPUT(table, k);
      precise float sum = y[k];
      if (body_adds(k)) sum += load(to, element, body_out_type(k));
      store(to, element, body_out_type(k), sum);
    }
}
void body_run(uint64_t table, uint element, float product) {
  float x[8];
  body_fetch(table, element, x);
  body_finish(table, element, x, product);
}

void body_run4(uint64_t table, uint element, vec4 product) {
  uint at[8];
  body_offsets(element, at);
  vec4 in4[8], out4[6];
  [[unroll]] for (uint k = 0u; k < 8u; ++k)
    if (((BODY_READS >> k) & 1u) != 0u) {
      const uint64_t from = u64_ref(table).at[k];
      const uint t = body_in_type(k);
      if (((BODY_QUADS >> k) & 1u) != 0u) in4[k] = load4(from, at[k] / 4u, t);
      else if (((BODY_QUADS >> (8u + k)) & 1u) != 0u) in4[k] = vec4(load(from, at[k], t));
      else {
        const uint inner[8] = uint[](BODY_S00, BODY_S10, BODY_S20, BODY_S30, BODY_S40, BODY_S50, BODY_S60, BODY_S70);
        [[unroll]] for (uint e = 0u; e < 4u; ++e) in4[k][e] = load(from, at[k] + e * inner[k], t);
      }
    }
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    float x[8], y[6];
    [[unroll]] for (uint k = 0u; k < 8u; ++k) x[k] = in4[k][e];
    body_evaluate(x, product[e], y);
    [[unroll]] for (uint k = 0u; k < 6u; ++k) out4[k][e] = y[k];
  }
  [[unroll]] for (uint k = 0u; k < 6u; ++k)
    if (k < (BODY_OUTPUTS & 255u)) {
      const uint64_t to = u64_ref(table).at[8u + k];
      const uint t = body_out_type(k);
      precise vec4 sum = out4[k];
      if (t == BOOL) {
        [[unroll]] for (uint e = 0u; e < 4u; ++e) store(to, element + e, t, sum[e] + (body_adds(k) ? load(to, element + e, t) : 0.0));
      } else {
        if (body_adds(k)) sum += load4(to, element / 4u, t);
        store4(to, element / 4u, t, sum);
      }
    }
}
