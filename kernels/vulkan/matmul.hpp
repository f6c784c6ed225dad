#pragma once
/// Matrix products without matrix units: tiles in f32 (matmul.comp), and products of few rows (matmul_skinny.comp).
#include <isotope/kernels/vulkan/matmul_dispatches.hpp>
#include <isotope/kernels/vulkan/matmul_epilogue.hpp>
#include <isotope/shaders/matmul_few.hpp>
#include <isotope/shaders/matmul_many.hpp>
#include <isotope/shaders/matmul_plain.hpp>
#include <isotope/shaders/matmul_skinny_few.hpp>
#include <isotope/shaders/matmul_skinny_many.hpp>
#include <isotope/shaders/matmul_skinny_plain.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::matmul, P, kernels::portable> {
  /// The residual and its like: element i of an epilogue operand is read before element i of the output is written, by the same invocation.
  static constexpr std::uint32_t inplace = 0xfc;
  static constexpr bool epilogue = true;
  /// Longest serial sum. The parts of a split K and the lanes of few rows make it shorter, by a choice that depends on the device; never longer.
  static constexpr std::int64_t chain(std::int64_t K) { return K; }
  static constexpr std::int64_t scratch(const step_shapes& s) { return matmul_split::scratch(s); }

  static constexpr std::int64_t few_rows = 8;  // a subgroup of 32 keeps the sums of 8 rows and 4 columns in registers

  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const matmul_job j(l);
    if (j.s.M <= few_rows) return record_few_rows(j, r);
    if (const matmul_epilogue<P> apart(l); apart.possible()) return apart.record(r, record);
    record_tiles(j, r);
  }

 private:
  struct tile {
    std::int64_t side, resident;  // workgroups that a multiprocessor holds
    double efficiency;            // of the fastest tile: an H200 gives 42 and 32 TFLOP/s
  };
  static constexpr tile tiles[] = {{128, 2, 1.0}, {64, 4, 0.76}};
  static constexpr std::int64_t slab = 16;      // of K, as in matmul.comp
  static constexpr std::int64_t few_units = 8;  // drivers that run on processors compile straight code slowly and gain nothing by it
  static constexpr double flops_per_byte = 10;  // an H200: 42 TFLOP/s of the fastest tile against 4.2 TB/s

  static void record_tiles(const matmul_job& j, recording& r) {
    const matmul_shape& s = j.s;
    const facts& d = *j.given->device;
    const tile* best = nullptr;
    matmul_split::choice split;
    const auto count = [&](const tile& t) { return (s.M + t.side - 1) / t.side * ((s.N + t.side - 1) / t.side); };
    for (const tile& t : tiles) {
      const auto c = matmul_split::choose(count(t) * s.batches(), t.side * t.side, j.y().dims.count(), s.K, slab,
                                          {t.resident * d.units, flops_per_byte, t.efficiency}, d.switches.split_k);
      if (best == nullptr || c.cost < split.cost) best = &t, split = c;
    }
    const bool a_whole = j.whole(s.a, 0, 4), b_whole = j.whole(s.b, 1, 4);
    matmul_dispatches::form f;
    f.code = {&shaders::matmul_plain, &shaders::matmul_few, &shaders::matmul_many};
    f.own.add(best->side).add(a_whole).add(b_whole).add(d.units < few_units ? 2 : 16);
    f.tiles = cover(count(*best), 1);
    f.edge = !(a_whole && b_whole && s.M % best->side == 0 && s.N % best->side == 0 && s.K % slab == 0);
    matmul_dispatches(j, r).add(f, split);
  }
  static void record_few_rows(const matmul_job& j, recording& r) {
    const matmul_shape& s = j.s;
    // More rows, more columns of a subgroup: their products share what is read of A. Along N, the subgroups of a workgroup share the rows' sums.
    const std::int64_t lanes = j.given->device->subgroup, cols = s.M == 1 ? 1 : s.M <= 4 ? 2 : 4, teams = s.b.cross ? few_rows : 4;
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
