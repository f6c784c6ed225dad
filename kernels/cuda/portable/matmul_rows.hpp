#pragma once
/// The host side of matmul_rows.cu: products with at most 16 rows in f32 arithmetic, whose operands have lines along K.
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
    j_.add(r, f, k_.split(j_, f));
  }

 private:
  static constexpr std::int64_t warps = 8, columns = 4;  // of a block, of a warp
  using list = std::array<std::string_view, 5>;
  static constexpr list f32{"matmul_rows_f32_1", "matmul_rows_f32_2", "matmul_rows_f32_4", "matmul_rows_f32_8", "matmul_rows_f32_16"};
  static constexpr list bf16{"matmul_rows_bf16_1", "matmul_rows_bf16_2", "matmul_rows_bf16_4", "matmul_rows_bf16_8", "matmul_rows_bf16_16"};
  static constexpr list mixed{"matmul_rows_mixed_1", "matmul_rows_mixed_2", "matmul_rows_mixed_4", "matmul_rows_mixed_8",
                              "matmul_rows_mixed_16"};

  const matmul_job& j_;
  few_rows k_;

  std::span<const std::string_view> names() const {
    if (k_.formats(dtype::f32, dtype::f32)) return f32;
    if (k_.formats(dtype::bf16, dtype::bf16)) return bf16;
    if (k_.formats(dtype::f32, dtype::bf16)) return mixed;
    return {};
  }
  /// Warps share columns until blocks fill the device twice, as long as each has a step of 512 bytes of each line.
  std::int64_t count_teams() const {
    const std::int64_t step = 512 / size_of(k_.right.type), blocks = 2 * j_.given->device->multiprocessors;
    std::int64_t teams = 1;
    while (teams < warps && (k_.many + warps / teams * columns - 1) / (warps / teams * columns) * j_.s.batches() < blocks &&
           j_.s.K >= 2 * teams * step)
      teams *= 2;
    return teams;
  }
};

}  // namespace isotope::cuda
