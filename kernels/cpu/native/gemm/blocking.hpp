#pragma once
/// The block sizes of the native gemm, by the method of Goto & van de Geijn 2008 (Anatomy of high-performance matrix multiplication): a register tile
/// of C, a panel of B that the rows of A pass, a block of A that stays in L2, and a cell of C per task.
#include <isotope/kernels/cpu/gemm/microkernel.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

using portable::divide_up;
using portable::lanes;
using portable::larger_of;
using portable::smaller;
using portable::vector;

struct blocking {
  // 24 sums, 2 vectors of B and a broadcast fill 27 of 32 registers; 12, 2 and 1 fill 15 of 16. 24 multiply-adds take 12 clocks, three times their
  // latency of 4, and need 14 loads where 24 would fit.
  static constexpr std::int64_t rows = config::vector_registers >= 32 ? 12 : 6;
  static constexpr std::int64_t vectors = 2;
  static constexpr std::int64_t cols = vectors * lanes;
  // A panel of 32 x 384 takes 48 KB, the L1 of Zen 5 or Ice Lake; where L1 is smaller it comes from L2, at a sixth of the rate of L2. The block of A
  // has 264 x 384 elements: 396 KB, less than half of the smallest L2 (1 MB) of a processor with AVX-512. A longer block saves passes over C, each 48
  // loads and stores per 12 x depth clocks of the microkernel: 1 %. Other processors get about half.
  static constexpr std::int64_t depth = config::vector_registers >= 32 ? 384 : 256;
  static constexpr std::int64_t block_rows = config::vector_registers >= 32 ? 264 : 192;
  static constexpr std::int64_t tile_floats = 192 * 264;  // a cell that waits for its epilogue: 198 KB of L2 and of the stack
  static constexpr std::int64_t longest = 10 * depth;     // largest K of a chunk
  // The chunk of an operand's axis at the largest K: 256 tokens are one chunk of 4.8 MB, which L3 holds.
  static constexpr std::int64_t chunk_rows = 288;
  static constexpr std::int64_t chunk_unit = 48;  // whole vectors and whole register tiles
  // Up to so many threads pack an operand for themselves: packing a panel that another core has just read takes ten times as long (8.5 us, not 0.85,
  // Zen 5).
  static constexpr int copies = 4;
  static_assert(block_rows % rows == 0 && block_rows * cols <= tile_floats);
  static_assert(chunk_unit % rows == 0 && chunk_unit % lanes == 0 && chunk_rows % chunk_unit == 0);
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
