#pragma once
/// The host side of matmul_small.cu: which matmuls it takes, and their launches.
#include <isotope/fatbins/matmul_small.hpp>
#include <isotope/kernels/cuda/gemm/job.hpp>

namespace isotope::cuda {

class matmul_small {
 public:
  explicit matmul_small(const matmul_job& j) : j_(j) {}

  /// Returns why the kernel does not take this matmul; empty if it does.
  std::string_view obstacle() const {
    const matmul_shape& s = j_.s;
    const device_limits& d = *j_.given->device;
    if (d.switches.large_kernels) return "kernels of small matmuls are switched off";
    if (s.a.type != dtype::bf16 || s.b.type != dtype::bf16) return "operands are not bf16";
    if (!d.tensor_cores() || !fatbins::matmul_small.there()) return "there is no code for tensor cores";
    if (!j_.fits() || s.K < 1 || s.K > most_depth || across() > most_y) return "a size does not fit";
    if (shared_bytes(most_depth) > d.shared_bytes) return "the device's shared memory is too small";
    if (down() * across() * s.batches() > blocks_at_once()) return "other kernels are faster where blocks wait for each other";
    if (!j_.has_case()) return "the kernel for small products has no such epilogue";
    return {};
  }
  void record(recording& r) const {
    static constexpr std::array<std::string_view, 4> functions{"matmul_small_nn", "matmul_small_nt", "matmul_small_tn", "matmul_small_tt"};
    matmul_job::form f;
    f.code = &fatbins::matmul_small;
    f.function = functions[j_.order()];
    f.across = across();
    f.tiles = down() * f.across;
    f.threads = 128;
    f.shared_bytes = shared_bytes(j_.s.K);
    f.matrices = "bf16";
    f.starts_early = j_.s.M <= most_early_rows;
    j_.add(r, f, {1, j_.s.K, 0});
  }

 private:
  // Of small_tile in matmul_small.cu. `shares`: warps that share K.
  static constexpr std::int64_t side = 32, slab = 128, stages = 6, shares = 4, blocks_of_multiprocessor = 4;
  static constexpr std::int64_t most_y = 65535;
  /// With more, a block takes longer than several blocks with a part of K each and the launch that adds the parts.
  static constexpr std::int64_t most_depth = 3072;
  /// Products of decoding start early. In training steps, with more rows, most kernels wait for two others, and none may start early.
  static constexpr std::int64_t most_early_rows = 128;
  const matmul_job& j_;

  std::int64_t down() const { return (j_.s.M + side - 1) / side; }
  std::int64_t across() const { return (j_.s.N + side - 1) / side; }
  static constexpr std::int64_t shared_bytes(std::int64_t K) {
    return std::max(std::min((K + slab - 1) / slab, stages) * 2 * side * slab * 2, shares * side * (side + 8) * 4);
  }
  /// On an H100 the kernel is the fastest one for the bodies of transformers if all its blocks run at once (3 to 6 us against 5 to 12 by
  /// matmul_hopper.cu), and not if some wait.
  std::int64_t blocks_at_once() const {
    constexpr std::int64_t reserved = 1 << 10;  // bytes of shared memory of a block that are the driver's
    const device_limits& d = *j_.given->device;
    const std::int64_t fit = d.shared_per_multiprocessor / (shared_bytes(j_.s.K) + reserved);
    return d.multiprocessors * std::clamp<std::int64_t>(fit, 1, blocks_of_multiprocessor);
  }
};

}  // namespace isotope::cuda
