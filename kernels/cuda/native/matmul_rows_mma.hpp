#pragma once
/// The host side of matmul_rows_mma.cu: products of bf16 operands with two to 16 rows, whose operands have lines along K.
#include <isotope/fatbins/matmul_rows_mma.hpp>
#include <isotope/kernels/cuda/gemm/few_rows.hpp>

namespace isotope::cuda {

class matmul_rows_mma {
 public:
  explicit matmul_rows_mma(const matmul_job& j) : j_(j), k_(j) {}

  bool takes() const {
    const device_limits& d = *j_.given->device;
    return d.tensor_cores() && fatbins::matmul_rows_mma.there() && k_.along_k() && k_.formats(dtype::bf16, dtype::bf16) && k_.few > 1 &&
           k_.wide(j_);
  }
  void record(recording& r) const {
    const std::size_t width = k_.many * j_.s.batches() < 64 * j_.given->device->multiprocessors ? 0 : 1;
    matmul_job::form f = k_.form(fatbins::matmul_rows_mma, functions[width][k_.few > 8 ? 1 : 0], columns[width]);
    f.matrices = "bf16";
    j_.add(r, f, k_.split(j_, f));
  }

 private:
  static constexpr std::array<std::int64_t, 2> columns{8, 16};  // of a block: few where the device would not be full
  static constexpr std::array<std::array<std::string_view, 2>, 2> functions{
      {{"matmul_rows_mma_8_8", "matmul_rows_mma_8_16"}, {"matmul_rows_mma_16_8", "matmul_rows_mma_16_16"}}};
  const matmul_job& j_;
  few_rows k_;
};

}  // namespace isotope::cuda
