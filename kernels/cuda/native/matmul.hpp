#pragma once
/// A matmul by cuBLASLt where it is here, or of bf16 operands on tensor cores: by matmul_small.cu where latency bounds it, by
/// matmul_hopper.cu on Hopper, else by matmul_mma.cu. With at most 16 rows and wide weights memory bounds it, and it runs in
/// matmul_rows_mma.cu or, of f32, in portable/matmul_rows.cu; with 17 to 64 rows, as in decoding, in matmul_rows_tile.cu where all blocks
/// run at once, and with many columns, as logits, on Hopper in matmul_wide_hopper.cu. On Hopper a fused body is part of our own kernel where it knows the body. Whatever none of them takes runs as in
/// portable/matmul.hpp, with the reason recorded, and so do weight gradients of f32 with few tiles. Products of f32 operands keep the
/// accuracy of f32: on Hopper large ones run in matmul_f32_hopper.cu, on tensor cores with three numbers of bf16 for each; elsewhere, and
/// where tensor cores are switched off, all are multiply-adds in f32.
#include <isotope/fatbins/matmul_mma.hpp>
#include <isotope/kernels/cuda/native/matmul_f32_hopper.hpp>
#include <isotope/kernels/cuda/native/matmul_hopper.hpp>
#include <isotope/kernels/cuda/native/matmul_library.hpp>
#include <isotope/kernels/cuda/native/matmul_rows_mma.hpp>
#include <isotope/kernels/cuda/native/matmul_rows_tile.hpp>
#include <isotope/kernels/cuda/native/matmul_serial.hpp>
#include <isotope/kernels/cuda/native/matmul_small.hpp>
#include <isotope/kernels/cuda/native/matmul_wide_hopper.hpp>
#include <isotope/kernels/cuda/portable/matmul.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::matmul, P, kernels::native> {
  using below = kernel<op::matmul, P, kernels::portable>;
  static constexpr std::uint32_t inplace = below::inplace;
  static constexpr bool epilogue = true;
  /// Returns the longest serial sum: tensor cores add the terms of a step in an order of their own, each rounded at most once.
  static constexpr std::int64_t chain(std::int64_t K) { return K; }
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t parts = matmul_split::scratch(s);
    if constexpr (std::same_as<P, precision::f32>) return parts + matmul_f32_hopper::scratch(s);
    return s.summed < 0 ? parts : std::max(parts, column_sum_bytes(s.out[std::size_t(s.summed)]));
  }
  /// Large products times GELU's gradient, which matmul_hopper.cu sums on the way.
  static constexpr bool column_sums(const step_shapes& s, std::span<const micro_op> body, int summed) {
    constexpr std::int64_t least = 1 << 21, least_side = 64;  // elements of the result; a side of the tiles
    if (s.constants<op::matmul>().format.type() != dtype::bf16 || body.size() != 1) return false;
    const micro_op& m = body[0];
    const shape& y = s.out[std::size_t(summed)];
    return m.op == &info<op::gelu_tanh_grad> && m.type == dtype::bf16 && m.arg[1] == gemm_result && m.store == summed && !y.has_scalar() &&
           y.count() >= least && y.cols() % 8 == 0 && y.cols() >= least_side && s.in[0][-1] >= least_side;
  }

  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    if (l.column_sums == nullptr) return record_product(l, r);
    const matmul_shape s(l);
    if (const matmul_hopper hopper(l, s); hopper.obstacle().empty() && hopper.sums_columns()) return hopper.record(r);
    record_product(l, r);
    const view& y = l.out[std::size_t(l.summed)];
    const std::int64_t cols = y.dims.cols();
    portable::record_column_sum(r, {.rows = y.dims.count() / cols, .cols = cols, .pitch = cols}, y, *l.column_sums, l.scratch);
  }
  /// Records the matmul without column sums.
  static void record_product(const launch& l, recording& r) {
    const matmul_job j(l);
    if (j.in_one_order()) return record_in_one_order(j, l, r);
    if (const matmul_rows_mma rows(j); j.fits() && rows.takes()) return rows.record(r);
    if (const matmul_rows_tile rows(j); j.fits() && rows.takes()) return rows.record(r);
    if (const matmul_wide_hopper wide(j); j.fits() && wide.takes()) return wide.record(r);
    const bool few = !j.fits() || matmul_rows(j).takes() || typename below::skinny(j).runs();  // bound by bytes
    if (const matmul_f32_hopper split(j); !few && split.obstacle().empty()) return split.record(r);
    if (!few && few_tiles(j) && below::runs_whole(j)) {
      enter_set(r, kernels::portable::name, "cuBLASLt needs more memory to divide K");
      return below::record(l, r);
    }
    if (!few && j.s.M <= most_decoded && j.s.N % 8 != 0 && l.body.empty() && obstacle(j).empty()) {
      return record_mma(j, l, r, l.device->switches.split_k);
    }
    const matmul_library<P> library(j);
    if (!few && l.body.empty() && library.obstacle().empty()) return library.record(r);
    if (const matmul_small small(j); !few && small.obstacle().empty()) return small.record(r);
    if (const matmul_hopper hopper(l, j.s); !few && hopper.obstacle().empty()) {
      if (starts_sooner(j) && obstacle(j).empty()) return record_tile(j, r, mma_tiles[1], {1, j.s.K, 0});
      return hopper.record(r);
    }
    if (!few && library.obstacle().empty()) return library.record(r);
    record_mma(j, l, r, l.device->switches.split_k);
  }
  /// Records a matmul with the caller's tile, in `parts` parts of K (0: by cost). Returns false if tensor cores do not take it.
  static bool record_as(const launch& l, recording& r, const matmul_tile& t, std::int64_t parts) {
    const matmul_job j(l);
    if (!obstacle(j).empty() || t.shared_bytes > l.device->shared_bytes) return false;
    const matmul_size size{j.s.M, j.s.N, j.s.K, j.s.batches()};
    record_tile(j, r, t, split_of(t, size, *l.device, mma_rates, parts));
    return true;
  }
  /// Returns why tensor cores cannot take this matmul; empty if they can.
  static std::string_view obstacle(const matmul_job& j) {
    const matmul_shape& s = j.s;
    const device_limits& d = *j.given->device;
    if (s.a.type != s.b.type) return "operands have different formats";
    if (s.b.type != dtype::bf16) return "tensor cores take operands in bf16 alone";
    if (!j.fits()) return "a size is too large for 32 bits";
    if (const typename below::skinny k(j); k.few <= 1 && !j.in_one_order()) return "one row or column is bound by bytes";
    if (d.switches.no_matrix_units) return "tensor cores are switched off";
    if (!d.tensor_cores()) return "the device has no tensor cores for bf16";
    if (!fatbins::matmul_mma.there()) return "this build has no code for tensor cores";
    if (mma_tiles.back().shared_bytes > d.shared_bytes) return "the device's shared memory fits no tile";
    return {};
  }

 private:
  /// Rows of decoding, whose results cuBLASLt writes slowly where their rows are not aligned, as those of 50,257 logits: 64 rows in 120 us on an H200, and tiles in 53, where
  /// reading the weights takes 18.
  static constexpr std::int64_t most_decoded = 64;
  /// Bytes of the column sums of y's row tiles, or of the chunks of rows that column_sum.cu sums.
  static constexpr std::int64_t column_sum_bytes(const shape& y) {
    const std::int64_t cols = y.cols();
    return cols == 0 ? 0 : 4 * cols * portable::divide_up(y.count() / cols, matmul_hopper_choice::rows);
  }
  /// Whether the small tile of matmul_mma.cu, whose blocks are done sooner than those of matmul_hopper.cu begin to multiply, is faster. On an
  /// H100: with an epilogue, 1024 x 768 x 256 takes 4.5 us instead of 6.1, 1024 x 768 x 768 8.3 instead of 8.7, and 2048 x 768 x 768 10.9 instead
  /// of 9.2.
  static bool starts_sooner(const matmul_job& j) {
    constexpr std::int64_t blocks_of_multiprocessor = 3, depth_of_multiprocessor = 1150, most_depth = 1024;
    const std::int64_t blocks = mma_tiles[1].count(j.s.M, j.s.N), all = j.given->device->multiprocessors;
    return !j.given->device->switches.large_kernels && j.s.K <= most_depth && blocks <= blocks_of_multiprocessor * all &&
           blocks * j.s.K <= depth_of_multiprocessor * all;
  }
  /// Whether this is a weight gradient of f32, dW = dY^T X, with few tiles. cuBLASLt divides K into more parts than there is memory for, else
  /// it is slow: on an H100, 384 x 1152 and 384 x 384 with K = 16384 ran at 15 and 8 TFLOP/s, by matmul_whole.cu at 47 and 46. Where both
  /// fill the device, they differ by 6 % at most.
  static bool few_tiles(const matmul_job& j) {
    const bool gradient = j.s.a.type == dtype::f32 && j.s.a.cross && j.s.b.cross;
    return gradient && 4 * whole_tiles.front().count(j.s.M, j.s.N) <= j.given->device->multiprocessors;
  }
  /// Records the matmul by a kernel that adds up each sum along K, 16 terms at a time. wgmma and mma.sync give the same bits.
  static void record_in_one_order(const matmul_job& j, const launch& l, recording& r) {
    if (obstacle(j).empty()) {
      if (const matmul_serial serial(j); serial.obstacle().empty()) return serial.record(r);
      if (const matmul_hopper hopper(l, j.s); hopper.obstacle().empty() && !starts_sooner(j)) return hopper.record(r);
    }
    record_mma(j, l, r, 1);
  }
  /// Records the cheapest tile of matmul_mma.cu in `parts` parts of K (0: by cost), or what is below where tensor cores do not take the product.
  static void record_mma(const matmul_job& j, const launch& l, recording& r, std::uint32_t parts) {
    if (const auto why = obstacle(j); !why.empty()) {
      enter_set(r, kernels::portable::name, why);
      return below::record(l, r);
    }
    const matmul_size size{j.s.M, j.s.N, j.s.K, j.s.batches()};
    const auto c = choose_kernel(mma_variants, mma_variant::problem{size, l.device, std::int64_t(parts)}, r.considered());
    record_tile(j, r, *c.variant->tile, c.cost);
  }
  static void record_tile(const matmul_job& j, recording& r, const matmul_tile& t, const matmul_split::choice& split) {
    matmul_job::form f;
    f.code = &fatbins::matmul_mma;
    f.function = t.bf16[j.order()];
    f.tiles = t.count(j.s.M, j.s.N);
    f.threads = t.threads;
    f.shared_bytes = t.shared_bytes;
    f.matrices = "bf16";
    j.add(r, f, split);
  }
};

}  // namespace isotope::cuda
