#pragma once
/// A gemm of few rows with operands whose lines run along K in whole pieces of 16 bytes: how matmul_rows.comp runs, alone or with a norm of its left operand.
#include <isotope/kernels/vulkan/gemm/dispatches.hpp>
#include <isotope/kernels/vulkan/rows/rows.hpp>
#include <isotope/shaders/matmul_rows_few.hpp>
#include <isotope/shaders/matmul_rows_many.hpp>
#include <isotope/shaders/matmul_rows_norm_few.hpp>
#include <isotope/shaders/matmul_rows_norm_many.hpp>
#include <isotope/shaders/matmul_rows_norm_plain.hpp>
#include <isotope/shaders/matmul_rows_plain.hpp>

namespace isotope::vulkan {

/// What a norm before the gemm adds to its arguments.
struct normalised_rows {
  view x, weight, bias, y, means, rstds;  // bias and means have address 0 for root mean square
  float epsilon = 0;
  std::uint32_t stored = 0;  // bit k: result k (y, means, rstds) is read by others than the gemm
  bool centered() const { return means.at != 0; }
};

struct few_rows {
  static constexpr std::int64_t teams = 4;  // subgroups of a workgroup
  static constexpr std::int64_t most = 2;   // rows; from four on, an H200 takes less time for the gemm that reads B once for all rows
  static constexpr std::int64_t many_lines = 16384;  // enough for a large device however they are shared
  static constexpr std::int64_t few_units = 8;       // drivers that run on processors compile straight code slowly and gain nothing from it

  static std::int64_t piece(const matmul_job& j) { return 16 / size_of(j.s.b.type); }
  static bool possible(const matmul_job& j) {
    const matmul_shape& s = j.s;
    return s.M <= most && !s.a.cross && !s.b.cross && s.K > 0 && j.whole(s.a, 0, piece(j)) && j.whole(s.b, 1, piece(j));
  }
  /// Lines of a subgroup. More of them share the reads of A, fewer fill a large device: an H200 holds about 2000 subgroups.
  static std::int64_t columns(const matmul_job& j) {
    const std::int64_t M = j.s.M, N = j.s.N;
    if (M == 1) return N >= many_lines ? 4 : 1;  // with two from 2048 on, a step of GPT-2 124M takes 1.06 times as long on an H200
    return N >= 2048 ? 4 : 2;
  }
  /// Subgroups that share a line: all of a workgroup for long lines of products that are not large, where fewer would wait for one piece after the other. An H200
  /// takes 1.08 times as long for a step of GPT-2 124M without it.
  static std::int64_t split(const matmul_job& j) {
    const bool is_long = j.s.K >= 2 * teams * piece(j) * std::int64_t(j.given->device->subgroup);
    return is_long && j.s.N < many_lines ? teams : 1;
  }
  /// Pieces of a line that a lane reads ahead: all that registers have room for.
  static std::int64_t depth(const matmul_job& j, std::int64_t cols) {
    const device_limits& d = *j.given->device;
    const std::int64_t deepest = d.multiprocessors < few_units ? 2 : 12 / cols;
    return std::clamp<std::int64_t>(portable::divide_up(j.s.K, split(j) * piece(j) * d.subgroup), 1, std::max<std::int64_t>(1, deepest));
  }
  static matmul_dispatches::form form_of(const matmul_job& j) {
    const device_limits& d = *j.given->device;
    const std::int64_t cols = columns(j);
    matmul_dispatches::form f;
    f.code = {&shaders::matmul_rows_plain, &shaders::matmul_rows_few, &shaders::matmul_rows_many};
    f.invocations = std::uint32_t(d.subgroup * teams);
    f.subgroup = d.subgroup;
    f.own.add(j.s.M).add(cols).add(depth(j, cols)).add(split(j));
    f.tiles = cover(j.s.N, cols * teams / split(j));
    f.quads = false;
    return f;
  }
  static void record(const matmul_job& j, recording& r) {
    auto f = form_of(j);
    f.own.add(dtype::f32).add(false).add(1).add(0.0f).add(0u);
    const auto first = r.dispatches.size();
    matmul_dispatches(j, r).add(f, {1, j.s.K});
    add_addresses(j, r, first);
  }
  /// Gives the dispatches from `first` on the addresses of the operands that the bodies of linear layers read, so that they need not wait for the table.
  static void add_addresses(const matmul_job& j, recording& r, std::size_t first) {
    std::array<std::uint64_t, 3> near{};
    for (std::size_t k = 0; k < near.size() && k + 2 < j.given->in.size(); ++k) near[k] = j.given->in[k + 2].at;
    for (std::size_t i = first; i < r.dispatches.size(); ++i) {
      dispatch& d = r.dispatches[i];
      std::memcpy(d.push.data() + sizeof(matmul_push), near.data(), sizeof near);
      d.push_bytes = sizeof(matmul_push) + sizeof near;
    }
  }
};

}  // namespace isotope::vulkan
