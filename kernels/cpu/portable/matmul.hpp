#pragma once
/// Bound by flops: 2 M N K at the rate of the multiply-adds (measured: bench/op_bench.cpp).
///
/// All threads pack B once into panels of whole vectors, a chunk of at most 1 MB at a time; then tasks of up to 96 x 256 elements of C run over K in
/// blocks of 256, so that one panel (32 KB) stays in L1 while the rows of A pass. A is read in place unless its stride would put all rows of a block
/// into the same cache sets. The division into tasks depends on the shape alone. A fused body works on a finished task while it is in L2. Eigen's
/// gemm was tried: it allocates, repacks both operands in every task and takes no epilogue.
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/gemm/a8.hpp>
#include <isotope/kernels/cpu/gemm/block_gemm.hpp>
#include <isotope/kernels/cpu/gemm/blocks.hpp>
#include <isotope/kernels/cpu/gemm/epilogue.hpp>
#include <isotope/kernels/cpu/gemm/pack.hpp>
#include <isotope/op/matmul.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

class matmul {
 public:
  /// A residual may be updated in place: element i of an epilogue operand is read before element i of the output is written.
  static constexpr std::uint32_t inplace = 0xfc;
  static constexpr bool epilogue = true;
  static constexpr bool reads_blocks = true;
  /// Returns the longest serial sum: the terms of a block of K, then the other blocks.
  static constexpr std::int64_t chain(std::int64_t K) {
    const std::int64_t blocks = larger_of(1, divide_up(K, matmul_grid::depth));
    return divide_up(K, blocks) + blocks - 1;
  }

  static constexpr std::int64_t scratch(const step_shapes& s) {
    const shape& y = s.out[0];
    const std::int64_t N = y[-1], K = s.in[0][-1], batches = N == 0 || y[-2] == 0 ? 0 : y.count() / (N * y[-2]);
    if (s.constants<op::matmul>().a8) return a8_gemm::bytes(y[-2] * batches, K);
    return 4 * larger_of(K * micro_tile::cols, smaller(batches * K * divide_up(N, micro_tile::cols) * micro_tile::cols, chunk_floats));
  }

  static void run(const launch& l) {
    if (l.out[0].dims.count() == 0) return;
    const matmul m(l);
    if (l.constants<op::matmul>().a8) a8_gemm(l, m.s_, m.epilogue_, plain_a8_panels).run();
    else m.all();
  }

 private:
  static constexpr std::int64_t chunk_floats = 1 << 18;

  explicit matmul(const launch& l) : l_(l), s_(l), epilogue_(l, s_) {}

  /// Packs and multiplies chunk by chunk: several whole batches, or several panels of one batch.
  void all() const {
    const std::int64_t panel = s_.K * micro_tile::cols, panels = divide_up(s_.N, micro_tile::cols);
    const std::int64_t fit = panel == 0 ? s_.batches * panels : larger_of(1, chunk_floats / panel);
    if (fit >= panels) {
      const std::int64_t group = fit / panels;
      for (std::int64_t b = 0; b < s_.batches; b += group) chunk(b, smaller(group, s_.batches - b), 0, s_.N);
    } else {
      const std::int64_t width = fit * micro_tile::cols;
      for (std::int64_t b = 0; b < s_.batches; ++b)
        for (std::int64_t n = 0; n < s_.N; n += width) chunk(b, 1, n, smaller(s_.N, n + width));
    }
  }

  void chunk(std::int64_t batch, std::int64_t batches, std::int64_t n0, std::int64_t n1) const {
    const std::int64_t panel = s_.K * micro_tile::cols, panels = divide_up(n1 - n0, micro_tile::cols);
    auto* packed = static_cast<float*>(l_.scratch);
    for_tasks(l_, batches * panels, double(batches * panels * panel) * 0.15, [&](std::int64_t t, int) {
      const std::int64_t n = n0 + t % panels * micro_tile::cols, cols = smaller(micro_tile::cols, n1 - n);
      if (in_blocks(l_.in[1].type))
        return unpack_panel(block_weight(l_.in[1]), n, cols, 0, s_.K, micro_tile::cols, packed + t * panel, l_.in[0].type == dtype::bf16);
      const std::int64_t at = s_.offset_b(batch + t / panels) + n * s_.b_col;
      with_type(l_.in[1], [&](const auto* b) {
        pack_panel(b + at, s_.b_k, s_.b_col, s_.K, cols, micro_tile::cols, packed + t * panel, micro_tile::cols);
      });
    });
    const matmul_grid g(s_.M, n1 - n0, batches);
    const double nsec = 2.0 * double(batches) * double(s_.M) * double(n1 - n0) * double(larger_of(s_.K, 8)) / 120.0;
    for_uneven_tasks(l_, g.tasks(), nsec, [&](std::int64_t t, int) {
      const auto c = g.cell(t);
      cell(batch + c.batch, c.m0, c.m1, n0 + c.n0, n0 + c.n1, packed + (c.batch * panels + c.n0 / micro_tile::cols) * panel);
    });
  }

  /// Makes C[m0:m1, n0:n1] of one batch from the packed panels of those columns.
  void cell(std::int64_t batch, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1, const float* panels) const {
    alignas(64) float tile[matmul_grid::rows * matmul_grid::cols];
    alignas(64) float left[matmul_grid::rows * (matmul_grid::depth + 16)];
    const std::int64_t m = m1 - m0, n = n1 - n0, blocks = larger_of(1, divide_up(s_.K, matmul_grid::depth)), kb = divide_up(s_.K, blocks);
    const bool in_place = epilogue_.direct() && n % lanes == 0;
    float* c = in_place ? l_.out[0].as<float>() + (batch * s_.M + m0) * s_.N + n0 : tile;
    const std::int64_t ldc = in_place ? s_.N : whole_vectors(n);
    for (std::int64_t k0 = 0; k0 < blocks * kb || k0 == 0; k0 += larger_of(1, kb)) {
      const std::int64_t k = smaller(kb, s_.K - k0);
      const left_block a = take_left(batch, m0, m, k0, k, left);
      const bool add = k0 > 0 || (in_place && epilogue_.adds());
      for (std::int64_t j = 0; j < n; j += micro_tile::cols) {
        const float* b = panels + (j / micro_tile::cols) * s_.K * micro_tile::cols + k0 * micro_tile::cols;
        block_gemm(a, m, b, micro_tile::cols, smaller(micro_tile::cols, n - j), c + j, ldc, k, add);
      }
    }
    if (!in_place) epilogue_.finish(batch, m0, m1, n0, n1, tile, ldc);
  }

  /// Returns rows m0.. and columns k0.. of A: in place, or copied to f32.
  left_block take_left(std::int64_t batch, std::int64_t m0, std::int64_t m, std::int64_t k0, std::int64_t k, float* copy) const {
    const std::int64_t at = s_.offset_a(batch) + m0 * s_.a_row + k0 * s_.a_k;
    const bool rows_lie = s_.a_k == 1;
    const std::int64_t far = rows_lie ? s_.a_row : s_.a_k;
    if (l_.in[0].type == dtype::f32 && far % 1024 != 0) return {l_.in[0].as<const float>() + at, s_.a_row, s_.a_k};
    const std::int64_t ld = rows_lie ? matmul_grid::depth + 16 : matmul_grid::rows, runs = rows_lie ? m : k, length = rows_lie ? k : m;
    const std::int64_t step = rows_lie ? 1 : s_.a_row;
    for (std::int64_t i = 0; i < runs; ++i) widen_run(l_.in[0].data, l_.in[0].type, at + i * far, step, copy + i * ld, length);
    return {copy, rows_lie ? ld : 1, rows_lie ? 1 : ld};
  }

  const launch& l_;
  matmul_shape s_;
  gemm_epilogue epilogue_;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::matmul, P, kernels::portable> : portable::matmul {};
}  // namespace isotope::cpu
