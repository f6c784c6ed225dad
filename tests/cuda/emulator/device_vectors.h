#pragma once
// The vector types of the device language, with its alignments.
#include "runtime.hpp"

#define ISOTOPE_EMULATED_VECTORS(T, NAME, BYTES)                             \
  struct NAME##1 { T x; };                                                   \
  struct alignas(2 * BYTES) NAME##2 { T x, y; };                             \
  struct NAME##3 { T x, y, z; };                                             \
  struct alignas(4 * BYTES > 16 ? 16 : 4 * BYTES) NAME##4 { T x, y, z, w; }; \
  inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                 \
  inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }         \
  inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
ISOTOPE_EMULATED_VECTORS(char, char, 1)
ISOTOPE_EMULATED_VECTORS(unsigned char, uchar, 1)
ISOTOPE_EMULATED_VECTORS(short, short, 2)
ISOTOPE_EMULATED_VECTORS(unsigned short, ushort, 2)
ISOTOPE_EMULATED_VECTORS(int, int, 4)
ISOTOPE_EMULATED_VECTORS(unsigned, uint, 4)
ISOTOPE_EMULATED_VECTORS(float, float, 4)
ISOTOPE_EMULATED_VECTORS(long long, longlong, 8)
ISOTOPE_EMULATED_VECTORS(unsigned long long, ulonglong, 8)
ISOTOPE_EMULATED_VECTORS(double, double, 8)
#undef ISOTOPE_EMULATED_VECTORS
using dim3 = isotope_emulated::index3;
