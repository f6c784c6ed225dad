#pragma once
/// Matrix products of 16-bit operands on matrix units (matmul_khr.comp). Whatever these do not take runs as in matmul.hpp, with the reason recorded.
#include <isotope/kernels/vulkan/matmul.hpp>
#include <isotope/kernels/vulkan/matmul_khr_tile.hpp>
#include <isotope/kernels/vulkan/matmul_narrowed.hpp>
#include <isotope/shaders/matmul_khr_bf16_few.hpp>
#include <isotope/shaders/matmul_khr_bf16_many.hpp>
#include <isotope/shaders/matmul_khr_bf16_plain.hpp>
#include <isotope/shaders/matmul_khr_f16_few.hpp>
#include <isotope/shaders/matmul_khr_f16_many.hpp>
#include <isotope/shaders/matmul_khr_f16_plain.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::matmul, P, kernels::native> {
  using below = kernel<op::matmul, P, kernels::portable>;
  static constexpr std::uint32_t inplace = 0;  // an output of its own can hold the product while the body runs
  static constexpr bool epilogue = true;
  static constexpr std::int64_t scratch(const step_shapes& s) { return matmul_narrowed<P>::scratch(s); }

  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const matmul_job j(l);
    if (const auto why = obstacle(j); !why.empty()) {
      tier_of(r, kernels::portable::name, why);
      below::record(l, r);
    } else if (const matmul_epilogue<P> apart(l); apart.possible()) {
      apart.record(r, record);
    } else if (matmul_narrowed<P>::needed(j)) {
      matmul_narrowed<P>::record(l, r, record_tiles);
    } else {
      record_tiles(j, r);
    }
  }

 private:
  static matmul_modules code(dtype t) {
    if (t == dtype::bf16) return {&shaders::matmul_khr_bf16_plain, &shaders::matmul_khr_bf16_few, &shaders::matmul_khr_bf16_many};
    return {&shaders::matmul_khr_f16_plain, &shaders::matmul_khr_f16_few, &shaders::matmul_khr_f16_many};
  }

  /// Why the matrix units cannot take this product; empty: they can.
  static std::string_view obstacle(const matmul_job& j) {
    const matmul_shape& s = j.s;
    const facts& d = *j.given->device;
    const bool narrowed = matmul_narrowed<P>::needed(j);
    if (s.a.type != s.b.type && !narrowed) return "operands have different formats";
    if (s.b.type != dtype::bf16 && s.b.type != dtype::f16) return "no matrix type for f32 operands";
    if (s.M <= below::few_rows) return "few rows are bound by bytes";
    if (d.switches.no_matrix_units) return "matrix units are switched off";
    if (d.switches.no_f16_matrices && s.b.type == dtype::f16) return "matrix units are switched off for f16";
    if (!d.distrusted.empty()) return d.distrusted;
    if (d.matrix(s.b.type) == nullptr) return "the device has no matrices of this format with f32 sums";
    if (!code(s.b.type).plain->there()) return "the shader compiler of this build knows no such matrices";
    if (best(j).tile == nullptr) return "the device's matrices, subgroups or shared memory fit no tile";
    if (narrowed) return matmul_narrowed<P>::obstacle(*j.given);
    return {};
  }

  struct choice {
    const matmul_khr_tile* tile = nullptr;
    matmul_split::choice split;
  };
  /// The cheapest tile, with its split of K.
  static choice best(const matmul_job& j) {
    const matmul_shape& s = j.s;
    const facts& d = *j.given->device;
    choice r;
    for (const auto& t : matmul_khr_tile::all) {
      if (!t.fits(*d.matrix(s.b.type), d)) continue;
      const matmul_split::machine m{std::int64_t(t.resident) * d.units, matmul_khr_tile::flops_per_byte, t.efficiency};
      const auto split =
          matmul_split::choose(t.count(s.M, s.N) * s.batches(), t.area(), j.y().dims.count(), s.K, t.slab, m, d.switches.split_k);
      if (r.tile == nullptr || split.cost < r.split.cost) r = {&t, split};
    }
    return r;
  }

  static void record_tiles(const matmul_job& j, recording& r) {
    const matmul_shape& s = j.s;
    const facts& d = *j.given->device;
    const auto [tile, split] = best(j);
    const matrix_shape unit = *d.matrix(s.a.type);
    const bool a_skewed = skewed(j, s.a, 0), b_skewed = skewed(j, s.b, 1);
    const bool a_whole = s.a.length % 8 == 0, b_whole = s.b.length % 8 == 0;
    matmul_dispatches::form f;
    f.code = code(s.a.type);
    f.invocations = tile->subgroups() * d.subgroup;
    f.subgroup = d.subgroup;
    f.own.add(tile->m)
        .add(tile->n)
        .add(tile->slab)
        .add(tile->teams_m)
        .add(tile->teams_n)
        .add(unit.m)
        .add(unit.n)
        .add(unit.k)
        .add(a_skewed)
        .add(b_skewed);
    f.own.add(tile->light ? unit.k : tile->slab);
    f.tiles = cover(tile->count(s.M, s.N), 1);
    f.edge = a_skewed || b_skewed || !a_whole || !b_whole || s.M % tile->m != 0 || s.N % tile->n != 0 || s.K % tile->slab != 0;
    matmul_dispatches(j, r).add(f, split);
  }
  /// Whether some line of operand k starts elsewhere than at a multiple of 16 bytes.
  static bool skewed(const matmul_job& j, const matmul_operand& x, std::size_t k) {
    return x.line % 8 != 0 || x.at % 16 != 0 || !j.batches_whole(k, 8);
  }
};

}  // namespace isotope::vulkan
