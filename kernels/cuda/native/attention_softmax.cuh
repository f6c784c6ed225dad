#pragma once
// Online softmax of the forward pass on tensor cores. Scores are relative to a reference for each row, the largest score when the reference
// was last set: only where a score exceeds it by more than `slack`, usually once or twice per row, are maxima exchanged and sums scaled
// down.
#include "../attention/fragments.cuh"

namespace isotope::cuda::gpu {

/// The results of STRIPS x 16 queries of a warp so far; TILES x 8 keys are added at a time.
template <int D, int STRIPS, int TILES> struct row_softmax {
  static constexpr float slack = 8;  // in base-2 scores: weights stay below 2^8
  using scores = float[STRIPS][TILES][4];

  float sums[STRIPS][D / 8][4];
  float total[STRIPS][2], top[STRIPS][2];  // the sums of weights, and the references in units of raw scores

  __device__ row_softmax() {
#pragma unroll
    for (int s = 0; s < STRIPS; ++s) {
      total[s][0] = total[s][1] = 0;
      top[s][0] = top[s][1] = hidden_score;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) sums[s][n][0] = sums[s][n][1] = sums[s][n][2] = sums[s][n][3] = 0;
    }
  }
  /// Hides the keys from k0 on that the queries from row0 on do not see.
  __device__ static void hide(const attention_arguments& a, scores& x, int row0, int k0, int lane) {
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = row0 + 16 * s + 8 * r + lane / 4, column = k0 + 2 * (lane % 4);
        const int first = first_key(a, row) - column, end = end_key(a, row) - column;
#pragma unroll
        for (int n = 0; n < TILES; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (8 * n + e >= end || 8 * n + e < first) x[s][n][2 * r + e] = hidden_score;
      }
  }
  /// x = 2^(two (x - top)), with new references where a score is far above the old one. `two` is the scale of the scores in base 2.
  __device__ void soften(scores& x, float two) {
    float highest[STRIPS][2];
    bool passed = false;
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float most = fmaxf(x[s][0][2 * r], x[s][0][2 * r + 1]);
#pragma unroll
        for (int n = 1; n < TILES; ++n) most = fmaxf(most, fmaxf(x[s][n][2 * r], x[s][n][2 * r + 1]));
        highest[s][r] = most;
        passed = passed || (most - top[s][r]) * two > slack;
      }
    if (__ballot_sync(0xffffffffu, passed) != 0) {
#pragma unroll
      for (int s = 0; s < STRIPS; ++s)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float most = highest[s][r];
          most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
          most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
          const float next = fmaxf(top[s][r], most), shrink = exp2_fast((top[s][r] - next) * two);
          top[s][r] = next;
          total[s][r] *= shrink;
#pragma unroll
          for (int n = 0; n < D / 8; ++n) {
            sums[s][n][2 * r] *= shrink;
            sums[s][n][2 * r + 1] *= shrink;
          }
        }
    }
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float less = top[s][r] < 0.1f * hidden_score ? 0.0f : -top[s][r] * two;
#pragma unroll
        for (int n = 0; n < TILES; ++n)
#pragma unroll
          for (int e = 2 * r; e < 2 * r + 2; ++e) {
            x[s][n][e] = exp2_fast(fmaf(x[s][n][e], two, less));
            total[s][r] += x[s][n][e];
          }
      }
  }
  /// Writes the logs of the denominators of strip s from row `row0` on, if they are wanted; returns by what to multiply the sums of the lane's
  /// two rows.
  __device__ float2 finish(const attention_arguments& a, int s, int row0, std::int64_t first, int lane) const {
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float all = total[s][r];
      all += __shfl_xor_sync(0xffffffffu, all, 1);
      all += __shfl_xor_sync(0xffffffffu, all, 2);
      const bool blind = top[s][r] < 0.1f * hidden_score && all == 0;
      const int row = row0 + 8 * r + lane / 4;
      inverse[r] = blind ? 0 : a.factor / all;
      if (lane % 4 == 0 && row < a.S && a.lse != 0)
        pointer<float>(a.lse)[first + row] = blind ? -INFINITY : top[s][r] * a.scale + logf(all);
    }
    return {inverse[0], inverse[1]};
  }
};

}  // namespace isotope::cuda::gpu
