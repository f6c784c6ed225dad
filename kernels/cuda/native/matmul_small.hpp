#pragma once
/// The host side of matmul_small.cu: which matmuls it takes, and their launches.
#include <isotope/fatbins/matmul_small.hpp>
#include <isotope/kernels/cuda/gemm/job.hpp>

namespace isotope::cuda {

/// A tile of matmul_small.cu: m x n sums by 128 threads, which request up to `stages` slabs of K at once.
struct matmul_small_tile {
  std::int64_t m, n, slab, stages, shares;    // shares: groups of warps that share K
  std::array<std::string_view, 4> functions;  // by matmul_job::order

  constexpr std::int64_t down(const matmul_shape& s) const { return (s.M + m - 1) / m; }
  constexpr std::int64_t across(const matmul_shape& s) const { return (s.N + n - 1) / n; }
  constexpr std::int64_t shared_bytes(std::int64_t K) const {
    return std::max(std::min((K + slab - 1) / slab, stages) * (m + n) * slab * 2, shares * m * (n + 8) * 4);
  }
};
inline constexpr std::array<matmul_small_tile, 2> small_tiles{{
    {32, 32, 128, 6, 4, {"matmul_small_32_nn", "matmul_small_32_nt", "matmul_small_32_tn", "matmul_small_32_tt"}},
    {64, 64, 64, 6, 1, {"matmul_small_64_nn", "matmul_small_64_nt", "matmul_small_64_tn", "matmul_small_64_tt"}},
}};

class matmul_small {
 public:
  explicit matmul_small(const matmul_job& j) : j_(j) {}

  /// Returns why the kernel does not take this matmul; empty if it does.
  std::string_view obstacle() const {
    const matmul_shape& s = j_.s;
    if (2.0 * double(s.M) * double(s.N) * double(s.K) * double(s.batches()) > most_flops)
      return "other kernels are faster for a product of this size";
    return unfit();
  }
  /// Returns why the kernel cannot take this matmul, whatever is fastest; empty if it can.
  std::string_view unfit() const {
    const matmul_shape& s = j_.s;
    const device_limits& d = *j_.given->device;
    if (s.a.type != dtype::bf16 || s.b.type != dtype::bf16) return "operands are not bf16";
    if (!d.tensor_cores() || !fatbins::matmul_small.there()) return "there is no code for tensor cores";
    if (!j_.fits() || s.K < 1 || s.N > most_columns) return "a size does not fit";
    if (!j_.has_case()) return "the kernel for small products has no such epilogue";
    if (largest_shared_bytes > d.shared_bytes) return "the device's shared memory is too small";
    return {};
  }
  void record(recording& r) const {
    const matmul_small_tile& large = small_tiles[1];
    const bool fills = 2 * large.down(j_.s) * large.across(j_.s) * j_.s.batches() > j_.given->device->multiprocessors;
    record_as(r, small_tiles[fills ? 1 : 0]);
  }
  void record_as(recording& r, const matmul_small_tile& t) const {
    matmul_job::form f;
    f.code = &fatbins::matmul_small;
    f.function = t.functions[j_.order()];
    f.across = t.across(j_.s);
    f.tiles = t.down(j_.s) * f.across;
    f.threads = 128;
    f.shared_bytes = t.shared_bytes(j_.s.K);
    f.matrices = "bf16";
    j_.add(r, f, {1, j_.s.K, 0});
  }

 private:
  static constexpr std::int64_t most_columns = 65535 * 32;  // blocks of a grid along y
  static constexpr double most_flops = 1.2e8;
  static constexpr std::int64_t largest_shared_bytes = 6 * 16 << 10;
  const matmul_job& j_;
};

}  // namespace isotope::cuda
