#pragma once
/// A gemm without matrix units: tiles in f32 (matmul.comp), and the gemv: of rows of weights in whole pieces (matmul_rows.comp), and any (matmul_skinny.comp).
#include <isotope/kernels/vulkan/gemm/after_norm.hpp>
#include <isotope/kernels/vulkan/gemm/dispatches.hpp>
#include <isotope/kernels/vulkan/gemm/epilogue.hpp>
#include <isotope/kernels/vulkan/gemm/tile.hpp>
#include <isotope/shaders/matmul_few.hpp>
#include <isotope/shaders/matmul_many.hpp>
#include <isotope/shaders/matmul_plain.hpp>
#include <isotope/shaders/matmul_skinny_few.hpp>
#include <isotope/shaders/matmul_skinny_many.hpp>
#include <isotope/shaders/matmul_skinny_plain.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::matmul, P, kernels::portable> {
  /// A residual may be updated in place: the same invocation reads element i of an epilogue operand before it writes element i of the output.
  static constexpr std::uint32_t inplace = 0xfc;
  static constexpr bool epilogue = true;
  /// Returns the longest serial sum. Split K and the lanes of a gemv may shorten it, depending on the device, but never lengthen it.
  static constexpr std::int64_t chain(std::int64_t K) { return K; }
  static constexpr std::int64_t scratch(const step_shapes& s) { return matmul_split::scratch(s); }

  static constexpr std::int64_t gemv_rows = 8;  // a subgroup of 32 keeps the sums of 8 rows and 4 columns in registers

  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const matmul_job j(l);
    if (j.s.M <= gemv_rows && !j.in_one_order()) return record_gemv(j, r);
    if (const matmul_epilogue<P> apart(l); apart.possible()) return apart.record(r, record);
    record_tiles(j, r);
  }

  /// Records a norm and the gemm of few rows that reads it.
  static bool record_after(const earlier_step& norm, const launch& l, recording& r) { return gemm_after_norm::record<P>(norm, l, r); }

  /// Records the gemm with the caller's tile, in `parts` parts of K (0: by cost). Returns false if it is a gemv.
  static bool record_as(const launch& l, recording& r, const matmul_tile& t, std::int64_t parts) {
    const matmul_job j(l);
    if (j.s.M <= gemv_rows) return false;
    record_tile(j, r, t, t.split(problem(j), parts));
    return true;
  }

 private:
  static constexpr std::int64_t few_units = 8;  // drivers that run on processors compile straight code slowly and gain nothing from it

  static matmul_problem problem(const matmul_job& j) { return {j.s.M, j.s.N, j.s.K, j.s.batches(), j.given->device, j.in_one_order()}; }
  static void record_tiles(const matmul_job& j, recording& r) {
    const auto c = choose_kernel(matmul_tile::all, problem(j), r.considered());
    record_tile(j, r, *c.variant, c.cost);
  }
  static void record_tile(const matmul_job& j, recording& r, const matmul_tile& t, matmul_split::choice split) {
    const matmul_shape& s = j.s;
    const bool a_whole = j.whole(s.a, 0, 4), b_whole = j.whole(s.b, 1, 4);
    matmul_dispatches::form f;
    f.code = {&shaders::matmul_plain, &shaders::matmul_few, &shaders::matmul_many};
    f.invocations = t.invocations();
    f.own.add(t.size)
        .add(a_whole)
        .add(b_whole)
        .add(j.given->device->multiprocessors < few_units ? 2 : 16)
        .add(t.slab)
        .add(t.side)
        .add(t.teams);
    f.tiles = cover(t.count(s.M, s.N), 1);
    f.edge = !(a_whole && b_whole && s.M % t.size == 0 && s.N % t.size == 0 && s.K % t.slab == 0);
    matmul_dispatches(j, r).add(f, split);
  }
  static void record_gemv(const matmul_job& j, recording& r) {
    if (few_rows::possible(j)) return few_rows::record(j, r);
    const matmul_shape& s = j.s;
    // With more rows, a subgroup takes more columns, which share the reads of A. Along N, the subgroups of a workgroup share the sums of a row.
    const std::int64_t lanes = j.given->device->subgroup, cols = s.M == 1 ? 1 : s.M <= 4 ? 2 : 4, teams = s.b.cross ? gemv_rows : 4;
    matmul_dispatches::form f;
    f.code = {&shaders::matmul_skinny_plain, &shaders::matmul_skinny_few, &shaders::matmul_skinny_many};
    f.invocations = std::uint32_t(lanes * teams);
    f.subgroup = std::uint32_t(lanes);
    f.own.add(s.M).add(cols).add(!s.a.cross && j.whole(s.a, 0, 4)).add(j.whole(s.b, 1, 4));
    f.tiles = s.b.cross ? cover(s.N, 4 * lanes) : cover(s.N, cols * teams);
    f.quads = s.b.cross || cols == 4;
    matmul_dispatches(j, r).add(f, {1, s.K});
  }
};

}  // namespace isotope::vulkan
