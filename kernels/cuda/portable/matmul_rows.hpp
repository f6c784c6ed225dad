#pragma once
/// The host side of matmul_rows.cu: products with at most 16 rows in f32 arithmetic, whose operands have lines along K. Weights of 16 bits
/// meet activations of f32, too.
#include <isotope/fatbins/matmul_rows.hpp>
#include <isotope/kernels/cuda/gemm/few_rows.hpp>

namespace isotope::cuda {

class matmul_rows {
 public:
  explicit matmul_rows(const matmul_job& j) : j_(j), k_(j) {}

  bool takes() const { return k_.along_k() && !names().empty() && (k_.few <= 4 || k_.wide(j_)); }
  void record(recording& r) const {
    const std::int64_t index = k_.few <= 1 ? 0 : k_.few <= 2 ? 1 : k_.few <= 4 ? 2 : k_.few <= 8 ? 3 : 4;
    const std::int64_t teams = count_teams();
    matmul_job::form f = k_.form(fatbins::matmul_rows, names()[std::size_t(index)], warps / teams * columns);
    f.teams = std::int32_t(teams);
    f.starts_early = !k_.swapped;
    j_.add(r, f, k_.split(j_, f));
  }

 private:
  static constexpr std::int64_t warps = 8, columns = 4;  // of a block, of a warp
  using list = std::array<std::string_view, 5>;
  static constexpr list f32{"matmul_rows_f32_1", "matmul_rows_f32_2", "matmul_rows_f32_4", "matmul_rows_f32_8", "matmul_rows_f32_16"};
  static constexpr list bf16{"matmul_rows_bf16_1", "matmul_rows_bf16_2", "matmul_rows_bf16_4", "matmul_rows_bf16_8", "matmul_rows_bf16_16"};
  static constexpr list f32_bf16{"matmul_rows_f32_bf16_1", "matmul_rows_f32_bf16_2", "matmul_rows_f32_bf16_4", "matmul_rows_f32_bf16_8",
                                 "matmul_rows_f32_bf16_16"};
  static constexpr list f32_f16{"matmul_rows_f32_f16_1", "matmul_rows_f32_f16_2", "matmul_rows_f32_f16_4", "matmul_rows_f32_f16_8",
                                "matmul_rows_f32_f16_16"};

  const matmul_job& j_;
  few_rows k_;

  std::span<const std::string_view> names() const {
    if (k_.formats(dtype::f32, dtype::f32)) return f32;
    if (k_.formats(dtype::bf16, dtype::bf16)) return bf16;
    if (k_.formats(dtype::f32, dtype::bf16)) return f32_bf16;
    if (k_.formats(dtype::f32, dtype::f16)) return f32_f16;
    return {};
  }
  /// Warps share columns until there is a block for each multiprocessor, as long as they have a step of 512 bytes of each line.
  std::int64_t count_teams() const {
    const std::int64_t step = 512 / size_of(k_.right.type), units = j_.given->device->multiprocessors;
    const auto blocks = [&](std::int64_t teams) {
      const std::int64_t across = warps / teams * columns;
      return (k_.many + across - 1) / across * j_.s.batches();
    };
    std::int64_t teams = 1;
    while (teams < warps && blocks(teams) < units && j_.s.K >= teams * step) teams *= 2;
    return teams;
  }
};

}  // namespace isotope::cuda
