#pragma once
/// Matrices of f32 as a .npy file, which numpy.load reads.
/// Source: NumPy Enhancement Proposal 1, format version 1.0.
#include <bit>
#include <cstddef>
#include <span>
#include <string>

namespace isotope::io {

/// The bytes before the numbers of a matrix (rows, cols) in row order. Their count is a multiple of 64.
inline std::string npy_header(std::size_t rows, std::size_t cols) {
  static_assert(std::endian::native == std::endian::little, "numbers are written as they are in memory, and the header says little-endian");
  std::string fields = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " + std::to_string(cols) + "), }";
  const std::string magic("\x93NUMPY\x01\x00", 8);
  const std::size_t before = magic.size() + 2;
  fields.resize((before + fields.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  fields += '\n';
  return magic + char(fields.size() & 0xff) + char(fields.size() >> 8) + fields;
}

}  // namespace isotope::io
