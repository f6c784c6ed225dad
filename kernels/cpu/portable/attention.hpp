#pragma once
/// Bound by multiply-adds and exp. Works on blocks of 64 queries x 64 keys. Scores are computed transposed, keys by queries, so that running maximum,
/// sum and exp run along vectors of queries, and keys and values are read in place. Memory is O(S): a tile per worker. Blocks above the diagonal and
/// before the window are skipped. Source: Dao 2023, arXiv:2307.08691.
#include <cmath>
#include <limits>

#include <isotope/kernels/cpu/attention/heads.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/gemm/pack.hpp>
#include <isotope/kernels/cpu/math/weight.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// x[d, q] = rows[q, d]: packs the D x 64 right operand of a gemm, with zeros past the last query.
inline void pack_transposed(const head_rows& x, std::int64_t rows, std::int64_t D, float* to) {
  constexpr std::int64_t block = attention_heads::block;
  if (x.type == dtype::bf16) {
    pack_panel(static_cast<const bfloat16*>(x.data) + x.at, 1, x.stride, D, rows, block, to, block);
  } else {
    pack_panel(x.f32(), 1, x.stride, D, rows, block, to, block);
  }
}

class attention {
 public:
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const auto n = op::attention_sizes::of(s);
    return 4 * slice_floats(n.D) * smaller(n.B * n.H * divide_up(n.S, attention_heads::block), max_workers);
  }
  static void run(const launch& l) {
    const attention_heads h(l);
    const std::int64_t blocks = divide_up(h.S, block), heads = h.B * h.H;
    for_uneven_tasks(l, blocks * heads, h.pairs() * (double(h.D) / 25.0 + 0.8 + h.dropout_cost()), [&](std::int64_t t, int slice) {
      const std::int64_t i = blocks - 1 - t / heads, b = t % heads / h.H, head = t % h.H;  // the longest rows come first
      block_of(l, h, b, head, i * block, static_cast<float*>(l.scratch) + slice * slice_floats(h.D));
    });
  }

  /// Returns the size of transposed queries, scores, results, and buffers for keys and values.
  static constexpr std::int64_t slice_floats(std::int64_t D) { return block * (block + 4 * whole_vectors(D)); }
  /// Computes the block of queries of one head from q0 on, and the logs of their denominators if those are an output.
  static void block_of(const launch& l, const attention_heads& h, std::int64_t b, std::int64_t head, std::int64_t q0, float* slice) {
    const std::int64_t width = h.padded_width(), n = smaller(block, h.S - q0), group = head / (h.H / h.G);
    float* scores = slice;                     // (keys, queries)
    float* query = scores + block * block;     // (D, queries)
    float* result = query + block * width;     // (queries, D)
    float* key_room = result + block * width;  // (keys, D)
    float* value_room = key_room + block * width;
    alignas(64) float top[block], sum[block], mask[block];
    for (int q = 0; q < block; ++q) {
      top[q] = -std::numeric_limits<float>::infinity();
      sum[q] = 0;
    }
    pack_transposed(h.rows(l.in, 0, b, head).from_row(q0), n, h.D, query);
    std::memset(result, 0, std::size_t(block * width) * 4);
    const auto [first, last] = h.seen(q0, n);
    for (std::int64_t k0 = first; k0 < last; k0 += block) {
      const std::int64_t keys = smaller(block, last - k0);
      const auto key = h.rows(l.in, 1, b, group).from_row(k0).padded(keys, h.D, key_room);
      const auto value = h.rows(l.in, 2, b, group).from_row(k0).padded(keys, h.D, value_room);
      block_gemm(key, keys, query, block, n, scores, block, h.D, false);
      h.mask(l, b, k0, keys, mask);
      softmax(h, q0, k0, keys, scores, mask, top, sum, k0 == first ? nullptr : result, width);
      if (h.dropout.on) drop(l, h, (b * h.H + head) * h.S + q0, k0, keys, scores);
      block_gemm({scores, 1, block}, n, value.data, value.row_stride, h.D, result, width, keys, true);
    }
    const auto y = h.rows(l.out[0], b, head).from_row(q0);
    float* lse = l.out.size() > 1 ? l.out[1].as<float>() + (b * h.H + head) * h.S + q0 : nullptr;
    for (std::int64_t q = 0; q < n; ++q) {
      float* row = result + q * width;
      const float k = sum[q] == 0 ? 0.0f : h.dropout.factor / sum[q];
      for (std::int64_t d = 0; d < h.D; ++d) row[d] *= k;
      y.store(q, row, h.D);
      if (lse != nullptr) lse[q] = sum[q] == 0 ? -std::numeric_limits<float>::infinity() : top[q] + std::log(sum[q]);
    }
  }

 private:
  static constexpr std::int64_t block = attention_heads::block;

  /// Zeros the dropped weights of a tile; the kept ones are scaled with the result.
  static void drop(const launch& l, const attention_heads& h, std::int64_t row, std::int64_t k0, std::int64_t keys, float* scores) {
    alignas(64) std::uint32_t kept[4 * block];
    for (std::int64_t k = 0; k < keys; ++k) {
      if (k % 4 == 0) h.dropout.draw(l, row, (k0 + k) / 4, block, kept);
      float* s = scores + k * block;
      const std::uint32_t* keep = kept + k % 4 * block;
      for (int q = 0; q < block; ++q) s[q] = math::from_bits(math::bits(s[q]) & keep[q]);
    }
  }

  /// scores = exp(scale scores + mask - new maximum). Sums and results under the old maximum are scaled down.
  static void softmax(const attention_heads& h, std::int64_t q0, std::int64_t k0, std::int64_t keys, float* scores, const float* mask,
                      float* top, float* sum, float* result, std::int64_t width) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    alignas(64) float base[block], shrink[block];
    std::memcpy(base, top, sizeof base);
    const float scale = h.scale;
    for (std::int64_t k = 0; k < keys; ++k) {
      float* s = scores + k * block;
      const float add = mask[k];
      for (int q = 0; q < block; ++q) s[q] = s[q] * scale + add;
      if (h.causal) {
        const std::int64_t blind = smaller(block, k0 + k - (h.T - h.S) - q0);  // so many first queries do not see this key
        for (std::int64_t q = 0; q < blind; ++q) s[q] = -infinity;
      }
      if (h.range.window != 0)
        for (std::int64_t q = h.stale(q0, k0 + k); q < block; ++q) s[q] = -infinity;
      for (int q = 0; q < block; ++q) base[q] = s[q] > base[q] ? s[q] : base[q];
    }
    for (int q = 0; q < block; ++q) {
      const float old = top[q];
      top[q] = base[q];
      base[q] = base[q] == -infinity ? 0.0f : base[q];
      shrink[q] = weight(old - base[q]);
      sum[q] *= shrink[q];
    }
    for (std::int64_t k = 0; k < keys; ++k) {
      float* s = scores + k * block;
      alignas(64) float e[block];
      for (int q = 0; q < block; ++q) e[q] = weight(s[q] - base[q]);
      for (int q = 0; q < block; ++q) {
        s[q] = e[q];
        sum[q] += e[q];
      }
    }
    if (result == nullptr) return;
    for (std::int64_t q = 0; q < block; ++q)
      for (std::int64_t d = 0; d < width; ++d) result[q * width + d] *= shrink[q];
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::attention, P, kernels::portable> : portable::attention {};
}  // namespace isotope::cpu
