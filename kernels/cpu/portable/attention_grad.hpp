#pragma once
/// Bound by multiply-adds: five gemms of 64 x 64 tiles. One task per batch and key-value head owns its dk and dv and walks the queries of its heads
/// in order, so that no sum depends on the threads. dk and dv accumulate in the output where it is f32, else in scratch memory.
#include <isotope/kernels/cpu/portable/attention.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// sum_i a[i] b[i] over whole vectors.
inline float padded_dot(const float* a, const float* b, std::int64_t n) {
  vector sum = {};
  for (std::int64_t i = 0; i < n; i += lanes) {
    vector x, y;
    __builtin_memcpy(&x, a + i, sizeof x);
    __builtin_memcpy(&y, b + i, sizeof y);
    sum += x * y;
  }
  for (std::int64_t half = lanes / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) sum[i] += sum[i + half];
  return sum[0];
}

class attention_grad {
 public:
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const auto n = op::attention_sizes::of(s);
    return 4 * slice_floats(n.D, n.T) * smaller(n.B * n.G, max_workers);
  }
  static void run(const launch& l) {
    const attention_heads h(l);
    for_uneven_tasks(l, h.B * h.G, h.pairs() * (double(h.D) / 10.0 + 1.0 + h.dropout_cost()), [&](std::int64_t t, int slice) {
      const attention_grad task(l, h, t / h.G, t % h.G, static_cast<float*>(l.scratch) + slice * slice_floats(h.D, h.T));
      task.all();
    });
  }

 private:
  static constexpr std::int64_t block = attention_heads::block;
  /// Returns the size of two tiles, seven blocks of rows, and the sums of dk and dv.
  static constexpr std::int64_t slice_floats(std::int64_t D, std::int64_t T) {
    return 2 * block * block + (7 * block + 2 * T) * whole_vectors(D);
  }

  attention_grad(const launch& l, const attention_heads& h, std::int64_t b, std::int64_t group, float* slice)
      : l_(l), h_(h), b_(b), group_(group), width_(h.padded_width()), first_(std::size_t((h.packed ? 1 : 3) + (h.masked ? 1 : 0))) {
    const std::int64_t rows = block * width_;
    p_ = slice;
    ds_ = p_ + block * block;
    query_t_ = ds_ + block * block;
    dy_t_ = query_t_ + rows;
    room_ = dy_t_ + rows;
    dq_ = room_ + 4 * rows;
    const auto dk = h.rows(l.out, 1, b, group), dv = h.rows(l.out, 2, b, group);
    direct_ = dk.type == dtype::f32 && h.D % lanes == 0;
    dk_ = direct_ ? dk.f32() : dq_ + rows;
    dv_ = direct_ ? dv.f32() : dk_ + h.T * width_;
    dk_stride_ = direct_ ? dk.stride : width_;
    dv_stride_ = direct_ ? dv.stride : width_;
  }

  void all() const {
    for (std::int64_t t = 0; t < h_.T; ++t) {
      std::memset(dk_ + t * dk_stride_, 0, std::size_t(direct_ ? h_.D : width_) * 4);
      std::memset(dv_ + t * dv_stride_, 0, std::size_t(direct_ ? h_.D : width_) * 4);
    }
    const std::int64_t each = h_.H / h_.G;
    for (std::int64_t head = group_ * each; head < (group_ + 1) * each; ++head)
      for (std::int64_t q0 = 0; q0 < h_.S; q0 += block) queries(head, q0);
    if (direct_) return;
    const auto dk = h_.rows(l_.out, 1, b_, group_), dv = h_.rows(l_.out, 2, b_, group_);
    for (std::int64_t t = 0; t < h_.T; ++t) {
      dk.store(t, dk_ + t * width_, h_.D);
      dv.store(t, dv_ + t * width_, h_.D);
    }
  }

  /// Processes one block of queries against all keys that it sees.
  void queries(std::int64_t head, std::int64_t q0) const {
    const std::int64_t n = smaller(block, h_.S - q0), rows = block * width_;
    const auto q = h_.rows(l_.in, 0, b_, head).from_row(q0), g = h_.rows(l_.in[first_ + 2], b_, head).from_row(q0);
    alignas(64) float delta[block] = {}, lse[block] = {}, mask[block];
    const auto query = q.padded(n, h_.D, room_), dy = g.padded(n, h_.D, room_ + rows);
    const auto y = h_.rows(l_.in[first_], b_, head).from_row(q0).padded(n, h_.D, room_ + 2 * rows);
    for (std::int64_t i = 0; i < n; ++i) {
      delta[i] = padded_dot(dy.data + i * dy.row_stride, y.data + i * y.row_stride, width_);
      lse[i] = l_.in[first_ + 1].as<const float>()[(b_ * h_.H + head) * h_.S + q0 + i];
    }
    pack_transposed(q, n, h_.D, query_t_);
    pack_transposed(g, n, h_.D, dy_t_);
    std::memset(dq_, 0, std::size_t(rows) * 4);
    const auto [start, last] = h_.seen(q0, n);
    for (std::int64_t k0 = start; k0 < last; k0 += block) {
      const std::int64_t keys = smaller(block, last - k0);
      const auto key = h_.rows(l_.in, 1, b_, group_).from_row(k0).padded(keys, h_.D, room_ + 2 * rows);
      const auto value = h_.rows(l_.in, 2, b_, group_).from_row(k0).padded(keys, h_.D, room_ + 3 * rows);
      block_gemm(key, keys, query_t_, block, n, p_, block, h_.D, false);
      block_gemm(value, keys, dy_t_, block, n, ds_, block, h_.D, false);
      h_.mask(l_, b_, k0, keys, mask);
      probabilities((b_ * h_.H + head) * h_.S + q0, q0, k0, keys, mask, lse, delta);
      block_gemm({p_, block, 1}, keys, dy.data, dy.row_stride, h_.D, dv_ + k0 * dv_stride_, dv_stride_, n, true);
      block_gemm({ds_, block, 1}, keys, query.data, query.row_stride, h_.D, dk_ + k0 * dk_stride_, dk_stride_, n, true);
      block_gemm({ds_, 1, block}, n, key.data, key.row_stride, h_.D, dq_, width_, keys, true);
    }
    const auto dq = h_.rows(l_.out, 0, b_, head).from_row(q0);
    for (std::int64_t i = 0; i < n; ++i) dq.store(i, dq_ + i * width_, h_.D);
  }

  /// p = exp(scale s + mask - lse), ds = scale p (dp - delta), both keys by queries. A query that sees nothing has lse -inf and p 0.
  /// Dropout zeroes p and dp of dropped keys and scales the others by its factor. `row`: the first query's index among all of (B,H,S).
  void probabilities(std::int64_t row, std::int64_t q0, std::int64_t k0, std::int64_t keys, const float* mask, const float* lse,
                     const float* delta) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const float scale = h_.scale, factor = h_.dropout.factor;
    alignas(64) std::uint32_t kept[4 * block];
    for (std::int64_t k = 0; k < keys; ++k) {
      float *s = p_ + k * block, *d = ds_ + k * block;
      const float add = mask[k];
      alignas(64) float e[block], x[block];
      for (int q = 0; q < block; ++q) {
        const float v = lse[q] == -infinity ? -infinity : s[q] * scale + add - lse[q];
        e[q] = weight(v);
      }
      if (h_.causal) {
        const std::int64_t blind = smaller(block, k0 + k - (h_.T - h_.S) - q0);
        for (std::int64_t q = 0; q < blind; ++q) e[q] = 0;
      }
      if (h_.range.window != 0)
        for (std::int64_t q = h_.stale(q0, k0 + k); q < block; ++q) e[q] = 0;
      if (h_.dropout.on) {
        if (k % 4 == 0) h_.dropout.draw(l_, row, (k0 + k) / 4, block, kept);
        const std::uint32_t* keep = kept + k % 4 * block;
        for (int q = 0; q < block; ++q) {
          d[q] = math::from_bits(math::bits(d[q] * factor) & keep[q]);
          x[q] = scale * (e[q] * (d[q] - delta[q]));
          e[q] = math::from_bits(math::bits(e[q] * factor) & keep[q]);
        }
      } else {
        for (int q = 0; q < block; ++q) x[q] = scale * (e[q] * (d[q] - delta[q]));
      }
      std::memcpy(s, e, sizeof e);
      std::memcpy(d, x, sizeof x);
    }
  }

  const launch& l_;
  const attention_heads& h_;
  std::int64_t b_, group_, width_;
  std::size_t first_;  // operand index of y; lse and dy follow
  float *p_, *ds_, *query_t_, *dy_t_, *room_, *dq_, *dk_, *dv_;
  std::int64_t dk_stride_, dv_stride_;
  bool direct_;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::attention_grad, P, kernels::portable> : portable::attention_grad {};
}  // namespace isotope::cpu
