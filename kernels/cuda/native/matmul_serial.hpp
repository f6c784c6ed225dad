#pragma once
/// The host side of matmul_serial.cu: which matmuls it takes, and their launches.
#include <algorithm>
#include <array>
#include <string_view>

#include <isotope/fatbins/matmul_serial.hpp>
#include <isotope/kernels/cuda/gemm/job.hpp>

namespace isotope::cuda {

/// Products whose sums are added along K one after the other.
class matmul_serial {
 public:
  explicit matmul_serial(const matmul_job& j) : j_(j) {}

  /// Returns why the kernel does not take this matmul; empty if it does. Needs operands that tensor cores take.
  std::string_view obstacle() const {
    const matmul_shape& s = j_.s;
    const device_limits& d = *j_.given->device;
    if (d.switches.large_kernels) return "kernels of small matmuls are switched off";
    if (!fatbins::matmul_serial.there()) return "there is no code for tensor cores";
    if (s.K < 1 || s.K > most_depth || across() > most_y || shared_bytes(s.K) > d.shared_bytes) return "a size does not fit";
    if (down() * across() * s.batches() > blocks_of_multiprocessor * d.multiprocessors)
      return "other kernels are faster where blocks wait for each other";
    if (!j_.has_case()) return "the kernel for small products has no such epilogue";
    return {};
  }
  void record(recording& r) const {
    static constexpr std::array<std::array<std::string_view, 4>, 2> functions{
        {{"matmul_serial_16_nn", "matmul_serial_16_nt"},
         {"matmul_serial_32_nn", "matmul_serial_32_nt", "matmul_serial_32_tn", "matmul_serial_32_tt"}}};
    matmul_job::form f;
    f.code = &fatbins::matmul_serial;
    f.function = functions[rows() == 16 ? 0 : 1][j_.order()];
    f.across = across();
    f.tiles = down() * f.across;
    f.threads = std::uint32_t(8 * rows());
    f.shared_bytes = shared_bytes(j_.s.K);
    f.matrices = "bf16";
    f.starts_early = j_.s.M <= most_early_rows;
    j_.add(r, f, {1, j_.s.K, 0});
  }

 private:
  static constexpr std::int64_t columns = 32, slab = 64, slabs = 24, blocks_of_multiprocessor = 2;
  static constexpr std::int64_t most_y = 65535, most_depth = slabs * slab;
  static constexpr std::int64_t most_early_rows = 128;  // as in matmul_small.hpp
  const matmul_job& j_;

  /// Of a tile.
  std::int64_t rows() const { return j_.s.M <= 16 && !j_.s.a.cross ? 16 : 32; }
  std::int64_t down() const { return (j_.s.M + rows() - 1) / rows(); }
  std::int64_t across() const { return (j_.s.N + columns - 1) / columns; }
  std::int64_t shared_bytes(std::int64_t K) const {
    return std::max((K + slab - 1) / slab * (rows() + columns) * slab * 2, rows() * (columns + 8) * 4);
  }
};

}  // namespace isotope::cuda
