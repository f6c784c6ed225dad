#pragma once
/// The tiles of matmul_khr.comp, which of them a device can run, and how long they take.
#include <algorithm>
#include <array>
#include <isotope/backend/vulkan/limits.hpp>
#include <isotope/kernels/vulkan/gemm/tile.hpp>

namespace isotope::vulkan {

/// What determines the speed of a tile: whether lines of A and B run along K (`n` in the first place, `t` in the second) or across it, and whether
/// all lines of the operands and of y start at multiples of 16 bytes (`odd` if not).
enum class matmul_khr_order : std::uint8_t { nt, nt_deep, nn, tn, odd_nt, odd_nn, odd_tn };

struct matmul_khr_problem {
  std::int64_t M, N, K, batches;
  bool a_cross, b_cross;  // lines run across K
  bool odd;
  const matrix_shape* unit;  // the device's matrices
  const device_limits* device;
  bool in_one_order = false;  // K is not divided

  static constexpr std::int64_t deep = 4096;  // K of a deep gemm

  constexpr matmul_khr_order order() const {
    using enum matmul_khr_order;
    if (a_cross) return odd ? odd_tn : tn;  // both along M and along K: measured only for B across K
    if (b_cross) return odd ? odd_nn : nn;
    return odd ? odd_nt : K > deep ? nt_deep : nt;
  }
};

struct matmul_khr_tile {
  std::uint32_t m, n, slab;        // m and n of a workgroup; slab: along K
  std::uint32_t teams_m, teams_n;  // subgroups of a workgroup along M and N
  bool early;                      // fragments are loaded one step before their use
  std::uint32_t filling;           // workgroups that keep a multiprocessor busy
  std::array<double, 7> speed;     // TFLOP/s of a full H200, by matmul_khr_order
  bool light = false;              // for drivers that run on processors, which take seconds to compile the straight code of the others

  static constexpr std::uint32_t few_units = 8;

  constexpr std::uint32_t subgroups() const { return teams_m * teams_n; }
  constexpr std::int64_t area() const { return std::int64_t(m) * n; }
  constexpr std::int64_t count(std::int64_t M, std::int64_t N) const { return ((M + m - 1) / m) * ((N + n - 1) / n); }
  /// Returns how much of a slab is straight code.
  constexpr std::uint32_t step(const matrix_shape& unit) const { return light ? (early ? 2 : 1) * unit.k : slab; }

  /// Returns the bytes of shared memory: slabs of both operands in the worst memory order, or the strips through which sums leave.
  constexpr std::uint32_t shared_bytes(std::uint32_t unit_m) const {
    const auto slab_of = [&](std::uint32_t lines, std::uint32_t length) { return lines * (length / 8 + 1) * 16; };
    const auto worst = [&](std::uint32_t side) { return std::max(slab_of(side, slab), slab_of(slab, side)); };
    return std::max(worst(m) + worst(n), subgroups() * unit_m * (n / teams_n / 4 + 1) * 16);
  }
  /// Returns why a device cannot run the tile; empty: it can. The device's matrices must divide the share of a subgroup, and the whole lines of a slab, in
  /// either memory order, must divide evenly among all invocations or three quarters of them.
  constexpr std::string_view unfit(const matrix_shape& unit, const device_limits& d) const {
    const std::uint32_t threads = subgroups() * d.subgroup;
    const auto shared_evenly = [&](std::uint32_t lines, std::uint32_t length) {
      const std::uint32_t row = length / 8;
      return threads % row == 0 ? lines % (threads / row) == 0 : 3 * threads % (4 * row) == 0 && lines % (3 * threads / (4 * row)) == 0;
    };
    if (threads > d.invocations) return "its workgroups have more invocations than the device's";
    if (m / teams_m % unit.m != 0 || n / teams_n % unit.n != 0 || slab % ((early ? 2 : 1) * unit.k) != 0 || unit.n % 4 != 0)
      return "the device's matrices do not divide it";
    if (!shared_evenly(m, slab) || !shared_evenly(slab, m) || !shared_evenly(n, slab) || !shared_evenly(slab, n))
      return "its slabs do not divide evenly among the device's subgroups";
    if (shared_bytes(unit.m) > d.shared_bytes) return "it takes more shared memory than a workgroup has";
    return {};
  }
  /// Whether a device can run the tile.
  constexpr bool runs(const matrix_shape& unit, const device_limits& d) const { return unfit(unit, d).empty(); }

  /// Returns the split of K: so many parts if they fit; 0: the fastest.
  constexpr matmul_split::choice split(const matmul_khr_problem& p, std::int64_t parts) const {
    constexpr double flops_per_byte = 69, fastest = 289;  // an H200: TFLOP/s, against 4.2 TB/s
    return matmul_split::choose(
        count(p.M, p.N) * p.batches, area(), p.batches * p.M * p.N, p.K, slab,
        {p.device->multiprocessors, double(filling), flops_per_byte, speed[std::size_t(p.order())] / fastest, 1e12 * fastest / 132}, parts);
  }

  constexpr std::string_view unfit(const matmul_khr_problem& p) const {
    if (light != (p.device->multiprocessors < few_units)) return light ? "it is for drivers that run on processors" : "it is for GPUs";
    return unfit(*p.unit, *p.device);
  }
  constexpr matmul_split::choice cost_of(const matmul_khr_problem& p) const {
    return split(p, p.in_one_order ? 1 : p.device->switches.split_k);
  }
  std::string name(const matmul_split::choice& c) const {
    return std::to_string(m) + " x " + std::to_string(n) + " of " + std::to_string(teams_m) + " x " + std::to_string(teams_n) +
           " subgroups, slabs of " + std::to_string(slab) + parts_text(c);
  }

  static const std::array<matmul_khr_tile, 8> all;
};

/// A multiprocessor is as fast with one workgroup of eight subgroups as with two, so only their last tiles count. A slab of 64 makes a whole line of
/// 128 bytes. 96 sums per invocation read the least shared memory; 64 fit devices with fewer registers. Slabs of 32 serve devices with 32 KiB of
/// shared memory. The `odd` speeds of these, and all speeds of smaller tiles, are estimates; 32 x 32 is for gemms that take as long as one tile.
inline constexpr std::array<matmul_khr_tile, 8> matmul_khr_tile::all{{
    {128, 192, 64, 2, 4, false, 1, {283, 297, 205, 225, 150, 179, 181}},
    {192, 128, 64, 4, 2, true, 1, {239, 289, 256, 222, 179, 206, 159}},
    {128, 128, 64, 4, 2, true, 1, {245, 309, 247, 282, 151, 181, 193}},
    {128, 128, 64, 2, 4, false, 1, {244, 303, 248, 281, 115, 192, 202}},
    {128, 128, 32, 2, 2, false, 2, {230, 248, 240, 276, 110, 150, 150}},
    {64, 64, 32, 2, 2, false, 2, {150, 170, 150, 160, 90, 110, 110}},
    {32, 32, 64, 2, 2, false, 4, {110, 110, 110, 110, 75, 75, 75}},
    {32, 32, 32, 2, 2, false, 4, {289, 289, 289, 289, 289, 289, 289}, true},
}};

}  // namespace isotope::vulkan
