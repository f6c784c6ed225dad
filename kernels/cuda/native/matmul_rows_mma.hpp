#pragma once
/// The host side of matmul_rows_mma.cu: products of bf16 operands with at most 16 rows, whose operands have lines along K.
#include <isotope/fatbins/matmul_rows_mma.hpp>
#include <isotope/kernels/cuda/gemm/few_rows.hpp>

namespace isotope::cuda {

class matmul_rows_mma {
 public:
  explicit matmul_rows_mma(const matmul_job& j) : j_(j), k_(j) {}

  bool takes() const {
    const device_limits& d = *j_.given->device;
    return d.tensor_cores() && fatbins::matmul_rows_mma.there() && k_.along_k() && k_.formats(dtype::bf16, dtype::bf16) && k_.wide(j_);
  }
  void record(recording& r) const {
    const choice c = choose();
    matmul_job::form f = k_.form(fatbins::matmul_rows_mma, c.functions[k_.few > 8 ? 1 : 0], c.columns);
    if (c.walks) f.tiles = std::min(f.tiles, walking_blocks());
    f.threads = c.threads;
    f.matrices = "bf16";
    f.starts_early = true;
    j_.add(r, f, c.walks ? matmul_split::choice{1, j_.s.K, 0} : k_.split(j_, f));
  }

 private:
  struct choice {
    std::int64_t columns;  // of a block
    std::uint32_t threads;
    std::array<std::string_view, 2> functions;  // for at most 8 rows, and for more
    bool walks;                                 // blocks walk over groups of columns
  };
  static constexpr choice usual{16, 256, {"matmul_rows_mma_16_8", "matmul_rows_mma_16_16"}, false},
      narrow{8, 256, {"matmul_rows_mma_8_8", "matmul_rows_mma_8_16"}, false},
      deep{8, 512, {"matmul_rows_mma_8_8_deep", "matmul_rows_mma_8_16_deep"}, false},
      three_steps{16, 256, {"matmul_rows_mma_short_8", "matmul_rows_mma_short_16"}, true},
      four_steps{16, 256, {"matmul_rows_mma_long_8", "matmul_rows_mma_long_16"}, true};
  static constexpr std::int64_t deep_from = 2048;              // from this K on, 16 warps have four steps each or more
  static constexpr std::int64_t steps = 8 * 32;                // elements along K of a step of each warp
  static constexpr std::int64_t blocks_of_multiprocessor = 3;  // of 8 columns and at most 8 rows, which run side by side

  std::int64_t units() const { return j_.given->device->multiprocessors; }
  std::int64_t walking_blocks() const { return 2 * units(); }
  std::int64_t blocks(std::int64_t columns) const { return (k_.many + columns - 1) / columns * j_.s.batches(); }
  choice choose() const {
    const std::int64_t K = j_.s.K;
    if (blocks(8) < units() && K >= deep_from) return deep;
    const bool whole = K % 32 == 0 && j_.aligned(k_.left, 0) && j_.aligned(k_.right, 1) && j_.s.batches() == 1;
    if (whole && K <= 4 * steps && (k_.few > 8 || blocks(16) <= walking_blocks())) return K <= 3 * steps ? three_steps : four_steps;
    if (k_.few > 8 ? blocks(16) < units() : blocks(8) <= blocks_of_multiprocessor * units()) return narrow;
    return usual;
  }
  const matmul_job& j_;
  few_rows k_;
};

}  // namespace isotope::cuda
