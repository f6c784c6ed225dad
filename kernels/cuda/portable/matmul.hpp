#pragma once
/// A matmul without tensor cores: tiles in f32 (matmul.cu, and matmul_whole.cu for large sizes without a remainder), and few rows or columns at
/// the speed of memory (matmul_rows.cu where lines of both operands run along K, else matmul_skinny.cu).
#include <isotope/fatbins/matmul.hpp>
#include <isotope/fatbins/matmul_skinny.hpp>
#include <isotope/fatbins/matmul_whole.hpp>
#include <isotope/kernels/cuda/gemm/job.hpp>
#include <isotope/kernels/cuda/gemm/tile.hpp>
#include <isotope/kernels/cuda/portable/matmul_rows.hpp>
#include <isotope/kernels/cuda/reference/matmul.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::matmul, P, kernels::portable> {
  /// A residual may be updated in place: the same thread reads element i of an epilogue operand before it writes element i of the output.
  static constexpr std::uint32_t inplace = 0xfc;
  static constexpr bool epilogue = true;
  /// Returns the longest serial sum. Split K and the lanes of a skinny product may shorten it, depending on the device, but never lengthen
  /// it.
  static constexpr std::int64_t chain(std::int64_t K) { return K; }
  static constexpr std::int64_t scratch(const step_shapes& s) { return matmul_split::scratch(s); }

  /// Up to so many rows, a skinny kernel is faster than tiles: where lines of the wide operand run along K, and where they run across it.
  static constexpr std::int64_t skinny_along_k = 4, skinny_across = 4;

  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const matmul_job j(l);
    if (!j.fits()) {
      enter_set(r, kernels::reference::name, "a size is too large for 32 bits");
      return kernel<op::matmul, P, kernels::reference>::record(l, r);
    }
    if (!j.in_one_order()) {
      if (const matmul_rows rows(j); rows.takes()) return rows.record(r);
      if (skinny(j).runs()) return record_skinny(j, r);
    }
    record_tiles(j, r);
  }
  /// Whether matmul_whole.cu computes this matmul.
  static bool runs_whole(const matmul_job& j) {
    if (!j.fits() || j.in_one_order() || skinny(j).runs()) return false;
    return choose(j).variant->whole;
  }
  /// Records the tiles of simt_tiles[tile] in `parts` parts of K (0: by cost). Returns false if there is no such kernel for the operands'
  /// formats.
  static bool record_as(const launch& l, recording& r, std::size_t tile, std::int64_t parts) {
    const matmul_job j(l);
    const matmul_tile& t = simt_tiles[tile];
    if (names(j, t)[0].empty()) return false;
    record_tile(j, r, t, split_of(t, size_of_job(j), *l.device, simt_rates, parts));
    return true;
  }
  /// Whether matmul_whole.cu takes a matmul with tile t: its loads have no conditions. Dense operands meet this in every memory order or in
  /// none.
  static bool whole(const matmul_job& j, const matmul_tile& t) {
    const matmul_shape& s = j.s;
    const bool f32 = s.a.type == dtype::f32 && s.b.type == dtype::f32;
    return f32 && t.shared_bytes <= j.given->device->shared_bytes && s.M >= t.m && s.N >= t.n && s.M % 4 == 0 && s.N % 8 == 0 && s.K > 0 &&
           s.K % 16 == 0 && j.aligned(s.a, 0) && j.aligned(s.b, 1);
  }
  /// The few rows and many columns of a skinny product; `swapped`: those of the transposed one.
  struct skinny {
    bool swapped, across;  // across: lines of the wide operand run along its columns
    std::int64_t few, many;
    explicit skinny(const matmul_job& j)
        : swapped(j.s.N < j.s.M), across(swapped ? j.s.a.cross : j.s.b.cross), few(std::min(j.s.M, j.s.N)), many(std::max(j.s.M, j.s.N)) {}
    bool runs() const { return few <= (across ? skinny_across : skinny_along_k); }
  };

 private:
  static const std::array<std::string_view, 4>& names(const matmul_job& j, const matmul_tile& t) {
    if (j.s.a.type == dtype::f32 && j.s.b.type == dtype::f32) return t.f32;
    if (j.s.a.type == dtype::bf16 && j.s.b.type == dtype::bf16) return t.bf16;
    return t.mixed;
  }
  /// A tile as a variant of the kernel. Those of matmul_whole.cu must fill the device, so that small products keep the bits of small tiles.
  struct variant {
    const matmul_tile* tile;
    bool whole;  // of matmul_whole.cu

    std::string_view unfit(const matmul_job& j) const {
      if (j.in_one_order() && (whole || tile == &simt_tiles[2]))
        return "it adds up in another order, and rows are to have the same bits however many there are";
      if (names(j, *tile)[0].empty()) return "it has no kernel for operands of these formats";
      if (!whole) return {};
      if (!kernel::whole(j, *tile)) return "it takes whole, dense f32 operands";
      const matmul_size s = size_of_job(j);
      if (tile->count(s.M, s.N) * s.batches * cost_of(j).parts < j.given->device->multiprocessors)
        return "its blocks do not fill the device";
      return {};
    }
    matmul_split::choice cost_of(const matmul_job& j) const {
      const device_limits& d = *j.given->device;
      return split_of(*tile, size_of_job(j), d, simt_rates, j.in_one_order() ? 1 : d.switches.split_k);
    }
    std::string name(const matmul_split::choice& c) const { return name_of(*tile, c); }
  };
  static constexpr std::array<variant, 5> variants{
      {{&simt_tiles[0], false}, {&simt_tiles[1], false}, {&simt_tiles[2], false}, {&whole_tiles[0], true}, {&whole_tiles[1], true}}};
  static auto choose(const matmul_job& j, kernel_choices* considered = nullptr) { return choose_kernel(variants, j, considered); }
  static bool is_whole(const matmul_tile& t) { return &t == &whole_tiles[0] || &t == &whole_tiles[1]; }
  static matmul_size size_of_job(const matmul_job& j) { return {j.s.M, j.s.N, j.s.K, j.s.batches()}; }
  static void record_tiles(const matmul_job& j, recording& r) {
    const auto c = choose(j, r.considered());
    record_tile(j, r, *c.variant->tile, c.cost);
  }
  static void record_tile(const matmul_job& j, recording& r, const matmul_tile& t, const matmul_split::choice& split) {
    matmul_job::form f;
    f.code = is_whole(t) ? &fatbins::matmul_whole : &fatbins::matmul;
    f.function = names(j, t)[j.order()];
    f.tiles = t.count(j.s.M, j.s.N);
    f.threads = t.threads;
    f.shared_bytes = t.shared_bytes;
    j.add(r, f, split);
  }

  static constexpr std::array<std::string_view, 3> skinny_f32_n{"matmul_skinny_f32_n_1", "matmul_skinny_f32_n_2", "matmul_skinny_f32_n_4"};
  static constexpr std::array<std::string_view, 3> skinny_bf16_n{"matmul_skinny_bf16_n_1", "matmul_skinny_bf16_n_2",
                                                                 "matmul_skinny_bf16_n_4"};
  static constexpr std::array<std::string_view, 3> skinny_any_k{"matmul_skinny_any_k_1", "matmul_skinny_any_k_2", "matmul_skinny_any_k_4"};
  static constexpr std::array<std::string_view, 3> skinny_any_n{"matmul_skinny_any_n_1", "matmul_skinny_any_n_2", "matmul_skinny_any_n_4"};

  static void record_skinny(const matmul_job& j, recording& r) {
    const matmul_shape& s = j.s;
    const skinny k(j);
    const auto index = std::size_t(k.few <= 1 ? 0 : k.few <= 2 ? 1 : 2);
    const bool same = s.a.type == s.b.type, all_f32 = same && s.a.type == dtype::f32, all_bf16 = same && s.a.type == dtype::bf16;
    constexpr std::int64_t warps = 8, threads_across = 8;
    const std::int64_t columns = k.across ? threads_across * (all_bf16 ? 8 : 4) : warps * 2;  // of a block
    const auto function = !k.across ? skinny_any_k[index] : (all_f32 ? skinny_f32_n : all_bf16 ? skinny_bf16_n : skinny_any_n)[index];
    const few_rows rows(j);
    matmul_job::form f = rows.form(fatbins::matmul_skinny, function, columns);
    f.eights = false;
    j.add(r, f, rows.split(j, f));
  }
};

}  // namespace isotope::cuda
