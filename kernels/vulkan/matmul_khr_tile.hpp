#pragma once
/// The tiles of matmul_khr.comp, and which of them a device can run.
#include <algorithm>
#include <array>
#include <isotope/backend/vulkan/facts.hpp>

namespace isotope::vulkan {

struct matmul_khr_tile {
  std::uint32_t m, n, slab;        // of a workgroup; slab: of K
  std::uint32_t teams_m, teams_n;  // its subgroups
  std::uint32_t resident;          // workgroups that a multiprocessor holds
  double efficiency;               // of the fastest tile, where the device is full
  bool light = false;              // for drivers that run on processors: they take seconds to compile the straight code of the others

  static constexpr double flops_per_byte = 69;  // an H200: 289 TFLOP/s of the fastest tile against 4.2 TB/s

  static constexpr std::uint32_t few_units = 8;

  constexpr std::uint32_t subgroups() const { return teams_m * teams_n; }
  constexpr std::int64_t area() const { return std::int64_t(m) * n; }
  constexpr std::int64_t count(std::int64_t M, std::int64_t N) const { return ((M + m - 1) / m) * ((N + n - 1) / n); }

  /// Bytes of shared memory: slabs of both operands in the worst memory order, or the strips by which sums leave.
  constexpr std::uint32_t shared_bytes(std::uint32_t unit_m) const {
    const auto slab_of = [&](std::uint32_t lines, std::uint32_t length) { return lines * (length / 8 + 1) * 16; };
    const auto worst = [&](std::uint32_t side) { return std::max(slab_of(side, slab), slab_of(slab, side)); };
    return std::max(worst(m) + worst(n), subgroups() * unit_m * (n / teams_n / 4 + 1) * 16);
  }
  /// Whether the device's matrices divide the subgroups' shares, and all invocations share the lines of a slab evenly in either memory order.
  constexpr bool fits(const matrix_shape& unit, const facts& d) const {
    const std::uint32_t threads = subgroups() * d.subgroup;
    const auto shared_evenly = [&](std::uint32_t lines, std::uint32_t length) {
      const std::uint32_t row = length / 8;
      return threads % row == 0 && lines % (threads / row) == 0;
    };
    return light == (d.units < few_units) && threads <= d.invocations && m / teams_m % unit.m == 0 && n / teams_n % unit.n == 0 &&
           slab % unit.k == 0 && unit.n % 4 == 0 && shared_evenly(m, slab) && shared_evenly(slab, m) && shared_evenly(n, slab) &&
           shared_evenly(slab, n) && shared_bytes(unit.m) <= d.shared_bytes;
  }

  static const std::array<matmul_khr_tile, 4> all;
};

/// 32 x 64 sums a subgroup are 64 registers an invocation. A slab of 64 makes a whole line of 128 bytes; 32 serves devices with 32 KiB of shared memory.
inline constexpr std::array<matmul_khr_tile, 4> matmul_khr_tile::all{{
    {128, 128, 64, 4, 2, 2, 1.0},
    {128, 128, 32, 4, 2, 2, 0.9},
    {64, 64, 32, 2, 2, 4, 0.6},
    {32, 32, 32, 2, 2, 4, 1.0, true},
}};

}  // namespace isotope::vulkan
