#pragma once
/// A gemm of 16-bit operands on matrix units (matmul_khr.comp). Whatever it does not take runs as in portable/matmul.hpp, with the reason recorded.
#include <isotope/kernels/vulkan/gemm/matrix_tile.hpp>
#include <isotope/kernels/vulkan/gemm/narrowed.hpp>
#include <isotope/kernels/vulkan/portable/matmul.hpp>
#include <isotope/shaders/matmul_khr_bf16_few.hpp>
#include <isotope/shaders/matmul_khr_bf16_many.hpp>
#include <isotope/shaders/matmul_khr_bf16_plain.hpp>
#include <isotope/shaders/matmul_khr_f16_few.hpp>
#include <isotope/shaders/matmul_khr_f16_many.hpp>
#include <isotope/shaders/matmul_khr_f16_plain.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::matmul, P, kernels::native> {
  using below = kernel<op::matmul, P, kernels::portable>;
  static constexpr std::string_view few = "few rows are bound by bytes";
  static constexpr std::uint32_t inplace = 0;  // the result needs an output of its own while the body runs
  static constexpr bool epilogue = true;
  /// Returns the longest serial sum: matrix units add the terms of a step in an order of their own, each rounded at most once.
  static constexpr std::int64_t chain(std::int64_t K) { return K; }
  static constexpr std::int64_t scratch(const step_shapes& s) { return matmul_narrowed<P>::scratch(s); }

  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const matmul_job j(l);
    if (const auto why = obstacle(j); !why.empty()) {
      enter_set(r, kernels::portable::name, why);
      below::record(l, r);
    } else if (const matmul_epilogue<P> apart(l); apart.possible()) {
      apart.record(r, record);
    } else if (matmul_narrowed<P>::needed(j)) {
      matmul_narrowed<P>::record(l, r, record_tiles);
    } else {
      record_tiles(j, r);
    }
  }

  static bool record_after(const earlier_step& norm, const launch& l, recording& r) { return gemm_after_norm::record<P>(norm, l, r, few); }

  /// Returns the fastest tile for a gemm of a format that the device has matrices for.
  static auto best(const matmul_job& j, kernel_choices* considered = nullptr) {
    return choose_kernel(matmul_khr_tile::all, problem(j), considered);
  }
  /// Records the gemm of 16-bit operands with the caller's tile, in `parts` parts of K (0: by cost). Returns false if the device or the gemm does not
  /// take it.
  static bool record_as(const launch& l, recording& r, const matmul_khr_tile& t, std::int64_t parts) {
    const matmul_job j(l);
    if (j.s.a.type != j.s.b.type || !obstacle(j).empty() || !t.runs(*l.device->matrix(j.s.b.type), *l.device)) return false;
    record_tile(j, r, t, t.split(problem(j), parts));
    return true;
  }

 private:
  static matmul_modules code(dtype t) {
    if (t == dtype::bf16) return {&shaders::matmul_khr_bf16_plain, &shaders::matmul_khr_bf16_few, &shaders::matmul_khr_bf16_many};
    return {&shaders::matmul_khr_f16_plain, &shaders::matmul_khr_f16_few, &shaders::matmul_khr_f16_many};
  }

  /// Returns why the matrix units cannot take this gemm; empty if they can.
  static std::string_view obstacle(const matmul_job& j) {
    const matmul_shape& s = j.s;
    const device_limits& d = *j.given->device;
    const bool narrowed = matmul_narrowed<P>::needed(j);
    if (s.a.type != s.b.type && !narrowed) return "operands have different formats";
    if (s.b.type != dtype::bf16 && s.b.type != dtype::f16) return "no matrix type for f32 operands";
    if (s.M <= below::gemv_rows && !j.in_one_order()) return few;
    if (d.switches.no_matrix_units) return "matrix units are switched off";
    if (d.switches.no_f16_matrices && s.b.type == dtype::f16) return "matrix units are switched off for f16";
    if (!d.distrusted.empty()) return d.distrusted;
    if (d.matrix(s.b.type) == nullptr) return "the device has no matrices of this format with f32 sums";
    if (!code(s.b.type).plain->there()) return "the shader compiler of this build knows no such matrices";
    if (best(j).variant == nullptr) return "the device's matrices, subgroups or shared memory fit no tile";
    if (narrowed) return matmul_narrowed<P>::obstacle(*j.given);
    return {};
  }

  static matmul_khr_problem problem(const matmul_job& j) {
    const matmul_shape& s = j.s;
    return {s.M,
            s.N,
            s.K,
            s.batches(),
            s.a.cross,
            s.b.cross,
            skewed(j, s.a, 0) || skewed(j, s.b, 1) || s.N % 8 != 0,
            j.given->device->matrix(s.b.type),
            j.given->device,
            j.in_one_order()};
  }
  static void record_tiles(const matmul_job& j, recording& r) {
    const auto c = best(j, r.considered());
    record_tile(j, r, *c.variant, c.cost);
  }
  static void record_tile(const matmul_job& j, recording& r, const matmul_khr_tile& tile, matmul_split::choice split) {
    const matmul_shape& s = j.s;
    const device_limits& d = *j.given->device;
    const matrix_shape unit = *d.matrix(s.a.type);
    const bool a_skewed = skewed(j, s.a, 0), b_skewed = skewed(j, s.b, 1);
    const bool a_whole = s.a.length % 8 == 0, b_whole = s.b.length % 8 == 0;
    matmul_dispatches::form f;
    f.code = code(s.a.type);
    f.invocations = tile.subgroups() * d.subgroup;
    f.subgroup = d.subgroup;
    f.own.add(tile.m)
        .add(tile.n)
        .add(tile.slab)
        .add(tile.teams_m)
        .add(tile.teams_n)
        .add(unit.m)
        .add(unit.n)
        .add(unit.k)
        .add(a_skewed)
        .add(b_skewed)
        .add(tile.step(unit))
        .add(tile.early)
        .add(leave(j, split));
    f.tiles = cover(tile.count(s.M, s.N), 1);
    f.edge = a_skewed || b_skewed || !a_whole || !b_whole || s.M % tile.m != 0 || s.N % tile.n != 0 || s.K % tile.slab != 0;
    matmul_dispatches(j, r).add(f, split);
  }
  /// Returns the constant LEAVE of matmul_khr.comp.
  static std::uint32_t leave(const matmul_job& j, const matmul_split::choice& split) {
    const auto product = j.given->constants<op::matmul>().format.type();
    const bool alone = split.parts == 1 && j.s.beta == 0 && !j.accumulates() && j.given->body.empty();
    if (!alone || product == dtype::f32 || j.y().type != product || j.y().at % 4 != 0) return 0;
    return j.s.N % 8 == 0 && j.y().at % 16 == 0 ? 1 : 2;
  }
  /// Whether some line of operand k does not start at a multiple of 16 bytes.
  static bool skewed(const matmul_job& j, const matmul_operand& x, std::size_t k) {
    return x.line % 8 != 0 || x.at % 16 != 0 || !j.batches_whole(k, 8);
  }
};

}  // namespace isotope::vulkan
