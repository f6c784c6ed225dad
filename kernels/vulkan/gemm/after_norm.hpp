#pragma once
/// A norm and the gemm of few rows that reads it, in one dispatch, which saves a barrier. What else reads of the norm's results is stored.
#include <isotope/backend/vulkan/table.hpp>
#include <isotope/kernels/vulkan/gemm/few_rows.hpp>
#include <isotope/kernels/vulkan/portable/layer_norm.hpp>
#include <isotope/kernels/vulkan/portable/rms_norm.hpp>

namespace isotope::vulkan {

class gemm_after_norm {
 public:
  /// Records both steps. Returns false, and records nothing, if they do not follow one another so or the shader does not take them.
  /// @param why  the reason of the dispatch, as in enter_set
  template <class P> static bool record(const earlier_step& before, const launch& l, recording& r, std::string_view why = {}) {
    const launch& norm = before.given;
    gemm_after_norm n;
    if (before.is<op::layer_norm, kernel<op::layer_norm, P, kernels::portable>>())
      n.of_ = {norm.in[0], norm.in[1], norm.in[2], norm.out[0], norm.out[1], norm.out[2], float(norm.constants<op::layer_norm>().epsilon)};
    else if (before.is<op::rms_norm, kernel<op::rms_norm, P, kernels::portable>>())
      n.of_ = {norm.in[0], norm.in[1], {}, norm.out[0], {}, norm.out[1], float(norm.constants<op::rms_norm>().epsilon)};
    else return false;
    n.of_.stored = n.of_.centered() ? before.read_later : (before.read_later & 1u) | (before.read_later & 2u) << 1;
    if (l.out[0].dims.count() == 0 || norm.out[0].dims.count() == 0) return false;
    matmul_job j(l);
    if (!n.takes(norm, j)) return false;
    j.s.a.at = n.of_.x.at;
    enter_set(r, kernels::portable::name, why);
    n.add(norm, j, r);
    return true;
  }

 private:
  normalised_rows of_;

  static constexpr std::int64_t most_held = 8;  // norm.comp, too, holds eight blocks, before it gives a row to a workgroup

  static std::int64_t blocks(const matmul_job& j) { return portable::divide_up(j.s.K / 4, j.given->device->subgroup); }
  bool takes(const launch& norm, const matmul_job& j) const {
    const matmul_shape& s = j.s;
    const auto piece = std::uint64_t(few_rows::piece(j));
    const auto aligned = [&](const view& v) { return v.at % (piece * std::uint64_t(size_of(v.type))) == 0; };
    if (j.in_one_order() || s.batches() != 1 || s.beta != 0 || !few_rows::possible(j)) return false;
    if (s.a.at != of_.y.at || s.a.type != of_.y.type || s.a.type != of_.x.type || s.M * s.K != of_.y.dims.count() ||
        of_.y.dims.cols() != s.K)
      return false;
    if ((s.M != 1 && s.a.line != s.K) || s.K % 4 != 0 || blocks(j) > most_held) return false;
    if (of_.weight.type != of_.bias.type && of_.centered()) return false;
    if (!aligned(of_.x) || !aligned(of_.y) || !aligned(of_.weight) || (of_.centered() && !aligned(of_.bias))) return false;
    return apart(norm, *j.given);
  }
  bool stores(std::size_t k) const { return ((of_.stored >> k) & 1u) != 0; }
  std::array<const view*, 3> results() const { return {&of_.y, &of_.means, &of_.rstds}; }
  /// Whether the two steps may run at the same time, but for what the second reads of the first's result.
  bool apart(const launch& norm, const launch& l) const {
    const auto touches = [](const view& w, std::span<const view> others) {
      return std::ranges::any_of(others, [&](const view& x) { return range(w).overlaps(x); });
    };
    for (const view& w : l.out)
      if (touches(w, norm.in)) return false;
    for (std::size_t k = 0; k < 3; ++k)
      if (const view& w = *results()[k]; stores(k) && (touches(w, norm.in) || touches(w, l.in.subspan(1)) || touches(w, l.out)))
        return false;
    return true;
  }
  void add(const launch& norm, const matmul_job& j, recording& r) const {
    auto f = few_rows::form_of(j);
    f.code = {&shaders::matmul_rows_norm_plain, &shaders::matmul_rows_norm_few, &shaders::matmul_rows_norm_many};
    f.own.add(of_.weight.type).add(of_.centered()).add(blocks(j)).add(of_.epsilon).add(of_.stored);
    const std::array<std::uint64_t, 3> written{of_.y.at, of_.means.at, of_.rstds.at};
    const std::uint64_t table = of_.stored == 0 ? 0 : r.keep(std::span<const std::uint64_t>(written));
    const auto first = r.dispatches.size();
    matmul_dispatches(j, r).add(f, {1, j.s.K});
    dispatch& d = r.dispatches[first];
    matmul_push push;
    std::memcpy(&push, d.push.data(), sizeof push);
    push.c = of_.weight.at;
    push.a_outer = std::uint32_t(of_.bias.at);
    push.a_inner = std::uint32_t(of_.bias.at >> 32);
    push.b_outer = std::uint32_t(table);
    push.b_inner = std::uint32_t(table >> 32);
    std::memcpy(d.push.data(), &push, sizeof push);
    few_rows::add_addresses(j, r, first);
    d.reads[0] = of_.x;
    for (std::size_t k = 1; k < norm.in.size(); ++k) d.reads.push_back(norm.in[k]);
    for (std::size_t k = 0; k < 3; ++k)
      if (stores(k)) d.writes.push_back(*results()[k]);
  }
};

}  // namespace isotope::vulkan
