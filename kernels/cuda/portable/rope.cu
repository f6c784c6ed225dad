// Rotary position embedding, four pairs per thread, or one if heads are no whole vectors; both halves are read before either is written.
// Bound by bytes. With positions on the device, angles are products of integers in 2^-32 of a turn, which lose nothing at any position, so
// that sine and cosine need no f64.
#include "rope.h"

#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

/// t = cosine and sine of an angle, and the sine times the direction; turn: the angle of one position in 2^-64 of a turn.
__device__ inline void rotation(std::uint64_t turn, std::int64_t position, float direction, float* t) {
  const auto angle = std::uint32_t((std::uint64_t(position) * turn) >> 32);
  const std::uint32_t quarter = (angle + 0x20000000u) >> 30;
  const auto rest = std::int32_t(angle - (quarter << 30));  // at most an eighth of a turn
  const std::int32_t high = rest & ~0xffff;
  constexpr float scale = 1.0f / 4294967296.0f, two_pi = 6.28318531f;
  constexpr float first = 6.28125f,
                  second = 0.00193530718f;  // 2 pi = first + second; `first` has 8 bits, so its product with `high` is exact
  const float r = float(high) * (first * scale) + (float(high) * (second * scale) + float(rest - high) * (two_pi * scale)), z = r * r;
  // Taylor series: the first terms left out are below 2^-29 for |r| <= pi / 4.
  const float sine = r + r * z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880))));
  const float cosine = 1.0f - z * (0.5f - z * (1.0f / 24 - z * (1.0f / 720 - z * (1.0f / 40320 - z * (1.0f / 3628800)))));
  const bool swapped = (quarter & 1u) != 0;
  const float c = swapped ? sine : cosine, s = swapped ? cosine : sine;
  t[0] = ((quarter + 1u) & 2u) != 0 ? -c : c;
  t[1] = direction * ((quarter & 2u) != 0 ? -s : s);
}

extern "C" __global__ void __launch_bounds__(1024) rope(const __grid_constant__ rope_operands a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  const std::int64_t head = i / a.groups, d = i % a.groups, s = head / a.H % a.S;
  const std::int64_t low = 2 * head * a.groups + d, turn = s * a.groups + d;
  const bool rotates = head % a.H < a.rotated, given = a.positions != 0;
  if (!rotates && a.x == a.y) return;
  const std::int64_t position = given ? pointer<const std::int32_t>(a.positions)[s] : 0;
  if (!a.wide) {
    float t[2] = {1.0f, 0.0f};
    if (given) rotation(pointer<const std::uint64_t>(a.table)[d], position, a.direction, t);
    else if (rotates) t[0] = pointer<const float>(a.table)[2 * turn], t[1] = pointer<const float>(a.table)[2 * turn + 1];
    const float p = load(a.x, low, a.type), q = load(a.x, low + a.groups, a.type);
    store(a.y, low, a.type, rotates ? p * t[0] - q * t[1] : p);
    store(a.y, low + a.groups, a.type, rotates ? q * t[0] + p * t[1] : q);
    return;
  }
  float t[8], p[4], q[4], first[4], second[4];
  if (given)
#pragma unroll
    for (int k = 0; k < 4; ++k) rotation(pointer<const std::uint64_t>(a.table)[4 * d + k], position, a.direction, t + 2 * k);
  else load_run<f32, 8>(a.table, 8 * turn, t);
  load_run<4>(a.x, 4 * low, a.type, p);
  load_run<4>(a.x, 4 * (low + a.groups), a.type, q);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    first[k] = rotates ? p[k] * t[2 * k] - q[k] * t[2 * k + 1] : p[k];
    second[k] = rotates ? q[k] * t[2 * k] + p[k] * t[2 * k + 1] : q[k];
  }
  store_run<4>(a.y, 4 * low, a.type, first);
  store_run<4>(a.y, 4 * (low + a.groups), a.type, second);
}

}  // namespace isotope::cuda::gpu
