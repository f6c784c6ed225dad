#pragma once
/// The host side of matmul_wide_hopper.cu: products of 17 to 64 rows of bf16 by so many columns that every multiprocessor has tiles.
#include <algorithm>
#include <cstddef>

#include <isotope/kernels/cuda/native/matmul_wide_hopper.h>
#include <isotope/fatbins/matmul_wide_hopper.hpp>
#include <isotope/kernels/cuda/gemm/job.hpp>

namespace isotope::cuda {

class matmul_wide_hopper {
 public:
  explicit matmul_wide_hopper(const matmul_job& j) : j_(j) {}

  bool takes() const {
    const matmul_shape& s = j_.s;
    const launch& l = *j_.given;
    const device_limits& d = *l.device;
    if (!d.hopper() || !fatbins::matmul_wide_hopper.there() || d.switches.large_kernels || d.switches.no_matrix_units) return false;
    const bool along_k = !s.a.cross && !s.b.cross && j_.aligned(s.a, 0) && j_.aligned(s.b, 1) && !s.overlapping();
    const bool plain = l.body.empty() && s.beta == 0 && l.accumulate == 0 && j_.y().type == dtype::bf16 &&
                       l.constants<op::matmul>().format.type() == dtype::bf16;
    return along_k && plain && s.a.type == dtype::bf16 && s.b.type == dtype::bf16 && s.batches() == 1 && s.pieces() == 1 &&
           s.M >= least_rows && s.M <= shape::rows && s.N >= shape::columns * d.multiprocessors && stages() >= least_stages;
  }
  void record(recording& r) const {
    const matmul_shape& s = j_.s;
    const launch& l = *j_.given;
    gpu::matmul_wide g{};
    g.y = j_.y().at;
    g.M = std::int32_t(s.M);
    g.N = std::int32_t(s.N);
    g.slabs = std::int32_t(slabs());
    g.stages = std::int32_t(stages());
    g.alpha = s.alpha;
    const std::int64_t tiles = (s.N + shape::columns - 1) / shape::columns;
    auto& d = r.add(fatbins::matmul_wide_hopper, "matmul_wide_hopper", g,
                    per_block(std::min<std::int64_t>(tiles, l.device->multiprocessors), shape::threads, shared_bytes(stages())),
                    {l.in[0], l.in[1]}, {j_.y()});
    d.maps.push_back(map_of(s.b, s.N, offsetof(gpu::matmul_wide, w), shape::columns));
    d.maps.push_back(map_of(s.a, s.M, offsetof(gpu::matmul_wide, x), shape::rows));
    d.matrices = "bf16";
    d.starts_early = true;
    d.early = {l.in[1]};
  }

 private:
  using shape = gpu::matmul_wide;
  static constexpr std::int64_t least_rows = 17, least_stages = 4;
  const matmul_job& j_;

  std::int64_t slabs() const { return (j_.s.K + shape::slab - 1) / shape::slab; }
  std::int64_t shared_bytes(std::int64_t stages) const {
    return slabs() * shape::slab_bytes + stages * shape::stage_bytes + shape::result_bytes + shape::barrier_bytes;
  }
  /// As many as shared memory has room for beside all of x.
  std::int64_t stages() const {
    const std::int64_t room = std::int64_t(j_.given->device->shared_bytes) - shared_bytes(0);
    return std::min<std::int64_t>(room / shape::stage_bytes, shape::most_stages);
  }
  tensor_map map_of(const matmul_operand& x, std::int64_t outer, std::size_t offset, std::uint32_t across) const {
    tensor_map m;
    m.argument_offset = std::uint32_t(offset);
    m.address = x.at;
    m.dims[0] = std::uint64_t(x.length);
    m.dims[1] = std::uint64_t(outer);
    m.strides_bytes[0] = std::uint64_t(2 * (x.line == 0 ? (x.length + 7) / 8 * 8 : x.line));
    m.box[0] = shape::slab;
    m.box[1] = across;
    return m;
  }
};

}  // namespace isotope::cuda
