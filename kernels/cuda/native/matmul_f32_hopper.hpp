#pragma once
/// The host side of matmul_f32_hopper.cu: which products of f32 it takes, and their launches. One splits b into planes in scratch, one
/// multiplies, and where K is divided, one adds the partial sums.
///
///   const matmul_f32_hopper h(j);
///   if (h.obstacle().empty()) h.record(r);
#include <isotope/kernels/cuda/native/matmul_f32_hopper.h>
#include <isotope/fatbins/matmul_f32_hopper.hpp>
#include <isotope/kernels/cuda/gemm/job.hpp>

namespace isotope::cuda {

class matmul_f32_hopper {
 public:
  static constexpr std::int64_t rows = 128, columns = 128, slab = 64, most_parts = 16;  // of a tile; along K
  static constexpr double least_flops = 1e9;        // with fewer, launches take longer than the multiply-adds that are saved
  static constexpr std::int64_t least_depth = 256;  // of K
  static constexpr std::int64_t few_elements = 1 << 14;

  /// How a product is divided.
  struct choice {
    std::int64_t cluster = 1, parts = 1;
    double cost = 0;  // clocks
  };

  explicit matmul_f32_hopper(const matmul_job& j) : j_(j), g_(j.whole_arguments()), a_(j.s.a), b_(j.s.b), M_(j.s.M), N_(j.s.N) {
    why_ = unfit();
    if (why_.empty() && M_ < N_ && g_.fast != gpu::case_chain_f32) swap();
    if (why_.empty()) choice_ = cheapest();
  }
  /// Returns why the kernel cannot take this matmul; empty if it can.
  std::string_view obstacle() const { return why_; }
  const choice& chosen() const { return choice_; }
  void record(recording& r) const { record_as(r, choice_); }

  /// Records the matmul with the caller's choice.
  void record_as(recording& r, const choice& c) const {
    const launch& l = *j_.given;
    const range planes{l.scratch, planes_bytes()};
    const range partial{l.scratch + std::uint64_t(planes.bytes()), c.parts == 1 ? 0 : 4 * c.parts * l.out[0].dims.count()};

    gpu::matmul_planes p{};
    p.from = b_.at;
    p.to = planes.first;
    p.line = b_.line;
    p.lines = lines_of_b();
    p.length = std::int32_t(b_.length);
    p.pitch = std::int32_t(pitch());
    p.plane = plane();
    r.add(fatbins::matmul_f32_hopper, "matmul_f32_planes", p, per_item(p.lines * (p.pitch / 8)), {l.in[g_.swapped != 0 ? 0 : 1]}, {planes});

    gpu::matmul_f32_hopper a{};
    a.M = std::int32_t(M_);
    a.N = std::int32_t(N_);
    a.slabs = std::int32_t(ceiling(j_.s.K, slab));
    a.parts = std::int32_t(c.parts);
    a.per = std::int32_t(ceiling(a.slabs, c.parts));
    a.row_tiles = std::int32_t(ceiling(M_, rows * c.cluster));
    a.column_tiles = std::int32_t(ceiling(N_, columns));
    a.cluster = std::int32_t(c.cluster);
    a.group = 8;
    a.g = g_;
    std::vector<range> reads{l.in[0], l.in[1], planes}, writes;
    if (c.parts > 1) {
      a.g.parts = a.parts;
      a.g.finish = gpu::finish_partial;
      a.g.fast = gpu::case_partial;
      a.g.y = partial.first;
      writes.push_back(partial);
    } else {
      j_.add_result_ranges(reads, writes);
    }
    const std::int64_t items = std::int64_t(a.row_tiles) * a.column_tiles * a.parts;
    grid count = per_block(std::min(items, l.device->multiprocessors / c.cluster) * c.cluster, 384, shared_bytes);
    count.cluster = std::uint32_t(c.cluster);
    dispatch& d = r.add(fatbins::matmul_f32_hopper, functions[(a_.cross ? 2u : 0u) + (b_.cross ? 0u : 1u)], a, count, std::move(reads),
                        std::move(writes));
    d.matrices = "bf16";
    d.maps.push_back(map_of_a());
    for (std::size_t k = 0; k < 3; ++k) d.maps.push_back(map_of_plane(k));
    if (c.parts > 1) j_.add_sum_of_parts(r, c.parts, partial);
  }

  /// Returns the bytes of scratch that the planes of b take in any memory order; 0 where only a switch could make the kernel run and b is
  /// large.
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const shape &a = s.in[0], &b = s.in[1], &y = s.out[0];
    if (a.rank < 2 || b.rank != 2) return 0;
    if (b.count() > few_elements && 2.0 * double(y.count()) * double(a[-1]) < least_flops) return 0;
    return 3 * (2 * round_up(b[0], 8) * round_up(b[1], 8) + 128) + 256;
  }

 private:
  static constexpr std::int64_t shared_bytes = 2 * (rows * slab * 4 + 3 * columns * slab * 2) + rows * columns * 4 + 64;
  static constexpr std::array<std::string_view, 4> functions{"matmul_f32_hopper_nn", "matmul_f32_hopper_nt", "matmul_f32_hopper_tn",
                                                             "matmul_f32_hopper_tt"};
  const matmul_job& j_;
  gpu::gemm g_;
  matmul_operand a_, b_;  // of the product that the kernel computes, (M_, N_)
  std::int64_t M_, N_;
  std::string_view why_;
  choice choice_;

  static constexpr std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
  static constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceiling(a, b) * b; }
  std::int64_t lines_of_b() const { return b_.cross ? j_.s.K : N_; }
  std::int64_t pitch() const { return round_up(b_.length, 8); }
  std::int64_t plane() const { return round_up(2 * lines_of_b() * pitch(), 128); }
  std::int64_t planes_bytes() const { return round_up(3 * plane(), 256); }

  /// Elements of f32 are described as pairs of 16 bits, which are copied as they are.
  tensor_map map_of_a() const {
    const matmul_operand& x = a_;
    tensor_map m;
    m.argument_offset = std::uint32_t(offsetof(gpu::matmul_f32_hopper, a));
    m.address = x.at;
    m.dims[0] = std::uint64_t(2 * x.length);
    m.dims[1] = std::uint64_t(x.cross ? j_.s.K : M_);
    m.strides_bytes[0] = std::uint64_t(4 * (x.line == 0 ? round_up(x.length, 4) : x.line));
    m.box[0] = 64;
    m.box[1] = std::uint32_t(x.cross ? slab : rows);
    return m;
  }
  tensor_map map_of_plane(std::size_t k) const {
    tensor_map m;
    m.argument_offset = std::uint32_t(offsetof(gpu::matmul_f32_hopper, b) + k * sizeof(gpu::tensor_map_bytes));
    m.address = j_.given->scratch + std::uint64_t(std::int64_t(k) * plane());
    m.dims[0] = std::uint64_t(pitch());
    m.dims[1] = std::uint64_t(lines_of_b());
    m.strides_bytes[0] = std::uint64_t(2 * pitch());
    m.box[0] = 64;
    m.box[1] = std::uint32_t(b_.cross ? slab / 2 : columns / 2);
    return m;
  }

  /// Computes the transposed product, so that the smaller operand is split.
  void swap() {
    std::swap(a_, b_);
    std::swap(M_, N_);
    std::swap(g_.a, g_.b);
    std::swap(g_.rows, g_.columns);
    g_.swapped = 1;
  }

  std::string_view unfit() const {
    const launch& l = *j_.given;
    const device_limits& d = *l.device;
    const matmul_shape& s = j_.s;
    if (s.a.type != dtype::f32 || s.b.type != dtype::f32) return "operands are not f32";
    if (!d.hopper()) return "the device is no Hopper";
    if (!fatbins::matmul_f32_hopper.there()) return "this build has no code for Hopper";
    if (d.shared_bytes < shared_bytes) return "the device's shared memory is too small";
    if (s.batches() != 1 || s.pieces() != 1) return "the kernel for Hopper takes no batches";
    if (s.beta != 0) return "the kernel for Hopper adds no matrix with a factor";
    if (s.M < 64 || s.N < 64 || s.K < slab) return "the product is too small for the tiles of Hopper";
    if (s.K < least_depth && !d.switches.large_kernels) return "short sums may be more accurate by multiply-adds";
    const bool small = 2.0 * double(s.M) * double(s.N) * double(s.K) < least_flops;
    if (small && !d.switches.large_kernels) return "the product is too small to be split";
    if (s.M >= 1 << 30 || s.N >= 1 << 30 || s.K >= 1 << 30) return "a size is too large for 32 bits";
    if (s.overlapping()) return "lines of an operand share elements";
    if (!j_.aligned(s.a, 0) || !j_.aligned(s.b, 1)) return "lines of an operand are not aligned to 16 bytes";
    if (g_.fast != gpu::case_store_f32 && g_.fast != gpu::case_add_f32 && g_.fast != gpu::case_chain_f32)
      return "the kernel for Hopper has no such epilogue";
    if (l.scratch == 0 || l.scratch % 256 != 0 || l.scratch_bytes < planes_bytes()) return "there is no memory for the planes of b";
    return {};
  }

  choice cheapest() const {
    choice best;
    for (const std::int64_t cluster : {2, 1})
      for (std::int64_t parts = 1; parts <= most_parts; ++parts) {
        const choice c = estimate(cluster, parts);
        if (c.cost > 0 && (best.cost == 0 || c.cost < best.cost)) best = c;
      }
    return best;
  }
  /// Costs 0 if K cannot be divided so. The clocks are those of an H100, whose power bounds them: where a part of it is idle, the rest is
  /// faster.
  choice estimate(std::int64_t cluster, std::int64_t parts) const {
    constexpr double of_slab = 3700, of_tile = 4700, launch = 9000, bytes_of_clock = 1100, boost = 1.1;
    const double alone = N_ <= 512 ? 0.97 : 1.05;  // a block that copies all of b's columns itself
    const matmul_shape& s = j_.s;
    const std::int64_t slabs = ceiling(s.K, slab), per = ceiling(slabs, parts), sums = 4 * parts * s.M * s.N;
    if (parts > 1 && (per < 8 || (parts - 1) * per >= slabs || sums > j_.given->scratch_bytes - planes_bytes())) return {};
    const std::int64_t all = j_.given->device->multiprocessors / cluster;
    const std::int64_t n = ceiling(M_, rows * cluster) * ceiling(N_, columns) * parts;
    const double unit = double(per) * of_slab * (cluster == 2 ? 1.0 : alone) + of_tile;
    double cost = std::max(unit * double(n) / double(all), double(ceiling(n, all)) * unit / boost) + 4000;
    if (parts > 1) cost += launch + 2 * double(sums) / bytes_of_clock;
    return {cluster, parts, cost};
  }
};

}  // namespace isotope::cuda
