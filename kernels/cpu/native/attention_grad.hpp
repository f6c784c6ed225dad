#pragma once
/// Bound by multiply-adds: five gemms of 64 x 64 tiles, without the register tiles that a causal query does not see. One task per batch and key-value
/// head owns its dk and dv and walks the queries of its heads in order, so that no sum depends on the threads. dk and dv accumulate in the output
/// where it is f32, else in scratch memory.
#include <isotope/kernels/cpu/native/attention.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Scores> class attention_grad {
 public:
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const auto n = op::attention_sizes::of(s);
    return 4 * slice_floats(n.D, n.T) * smaller(n.B * n.G, portable::max_workers);
  }
  static void run(const launch& l) {
    const portable::attention_heads h(l);
    portable::for_uneven_tasks(l, h.B * h.G, h.pairs() * (double(h.D) / 20.0 + 0.5 + h.dropout_cost()), [&](std::int64_t t, int slice) {
      attention_grad(l, h, t / h.G, t % h.G, static_cast<float*>(l.scratch) + slice * slice_floats(h.D, h.T)).all();
    });
  }

 private:
  static constexpr std::int64_t block = score_tile::block;
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  /// Returns the size of two tiles and pairs of one, seven blocks of rows, and the sums of dk and dv.
  static constexpr std::int64_t slice_floats(std::int64_t D, std::int64_t T) {
    return 3 * block * block + (7 * block + 2 * T) * whole(D, lanes);
  }

  attention_grad(const launch& l, const portable::attention_heads& h, std::int64_t b, std::int64_t group, float* slice)
      : l_(l),
        h_(h),
        b_(b),
        group_(group),
        width_(whole(h.D, lanes)),
        first_(std::size_t((h.packed ? 1 : 3) + (h.masked ? 1 : 0))),
        p_(slice),
        ds_(p_ + block * block),
        ds_pairs_(ds_ + block * block),
        room_(ds_pairs_ + block * block) {
    const auto dk = h.rows(l.out, 1, b, group), dv = h.rows(l.out, 2, b, group);
    direct_ = lie_whole(dk, h.D);
    dk_ = direct_ ? dk.f32() : room_ + 7 * block * width_;
    dv_ = direct_ ? dv.f32() : dk_ + h.T * width_;
    dk_stride_ = direct_ ? dk.stride : width_;
    dv_stride_ = direct_ ? dv.stride : width_;
  }

  void all() {
    const std::int64_t each = h_.H / h_.G;
    for (std::int64_t head = group_ * each; head < (group_ + 1) * each; ++head)
      for (std::int64_t q0 = 0; q0 < h_.S; q0 += block) queries(head, q0);
    begin(h_.T);
    if (direct_) return;
    const auto dk = h_.rows(l_.out, 1, b_, group_), dv = h_.rows(l_.out, 2, b_, group_);
    for (std::int64_t t = 0; t < h_.T; ++t) {
      store_row<Scores>(dk, t, dk_ + t * width_, h_.D, 1);
      store_row<Scores>(dv, t, dv_ + t * width_, h_.D, 1);
    }
  }

  /// Zeros the sums of the keys before `end` that have not been started.
  void begin(std::int64_t end) {
    for (; begun_ < end; ++begun_) {
      __builtin_memset(dk_ + begun_ * dk_stride_, 0, std::size_t(width_) * sizeof(float));
      __builtin_memset(dv_ + begun_ * dv_stride_, 0, std::size_t(width_) * sizeof(float));
    }
  }

  /// Processes one block of queries against all keys that it sees.
  void queries(std::int64_t head, std::int64_t q0) {
    const std::int64_t n = smaller(block, h_.S - q0), rows = block * width_, at = (b_ * h_.H + head) * h_.S + q0;
    const auto q = h_.rows(l_.in, 0, b_, head).from_row(q0), g = h_.rows(l_.in[first_ + 2], b_, head).from_row(q0);
    const panel query = Scores::on_right(q, n, h_.D, room_), dy = Scores::on_right(g, n, h_.D, room_ + rows);
    const panel query_t = Scores::transposed(q, n, h_.D, room_ + 2 * rows), dy_t = Scores::transposed(g, n, h_.D, room_ + 3 * rows);
    row_dots(g, h_.rows(l_.in[first_], b_, head).from_row(q0), n, h_.D, delta_);
    const float* lse = l_.in[first_ + 1].as<const float>() + at;
    for (std::int64_t i = 0; i < block; ++i)
      lse_[i] = i < n && lse[i] != -infinity ? lse[i] : infinity;  // a query that sees nothing gets weight 0
    const auto out = h_.rows(l_.out, 0, b_, head).from_row(q0);
    float* const dq = lie_whole(out, h_.D) ? out.f32() : room_ + 6 * rows;
    const std::int64_t dq_stride = lie_whole(out, h_.D) ? out.stride : width_;
    const auto [start, last] = h_.seen(q0, n);
    for (std::int64_t i = 0; last == 0 && i < n; ++i) __builtin_memset(dq + i * dq_stride, 0, std::size_t(width_) * sizeof(float));
    begin(start);  // no query sees the keys before the first window
    for (std::int64_t k0 = start; k0 < last; k0 += block) {
      const score_tile t = score_tile_of(h_, q0, n, k0, last);
      const auto key = Scores::both(h_.rows(l_.in, 1, b_, group_).from_row(k0), t.keys, h_.D, room_ + 4 * rows);
      const auto value = Scores::on_left(h_.rows(l_.in, 2, b_, group_).from_row(k0), t.keys, h_.D, room_ + 5 * rows);
      const auto made = [&](std::int64_t k, std::int64_t) { return tile_part{0, h_.D, t.first_made(k)}; };
      score_gemm<Scores>(key.rows, t.keys, query_t, p_, block, false, made);
      score_gemm<Scores>(value, t.keys, dy_t, ds_, block, false, made);
      differentiate(t, at, k0);
      const bool more = begun_ > k0;  // otherwise these are the first sums of the keys
      if (more) begin(k0 + t.keys);
      const auto seeing = [&](std::int64_t k, std::int64_t) { return tile_part{t.first_seeing(k), n, 0}; };
      score_gemm<Scores>(Scores::by_key(p_), t.keys, dy, dv_ + k0 * dv_stride_, dv_stride_, more, seeing);
      score_gemm<Scores>(Scores::by_key(ds_), t.keys, query, dk_ + k0 * dk_stride_, dk_stride_, more, seeing);
      begun_ = larger_of(begun_, k0 + t.keys);
      score_gemm<Scores>(Scores::by_query(Scores::per_step == 2 ? ds_pairs_ : ds_), n, key.right, dq, dq_stride, k0 > start,
                         [&](std::int64_t i, std::int64_t some) { return tile_part{0, t.seen(i + some), 0}; });
    }
    if (lie_whole(out, h_.D)) return;
    for (std::int64_t i = 0; i < n; ++i) store_row<Scores>(out, i, dq + i * dq_stride, h_.D, 1);
  }
  /// p = exp(scale s + mask - lse), ds = scale p (dp - delta), both keys by queries.
  /// Dropout zeroes p and dp of dropped keys and scales the others by its factor. `row`: the first query's index among all of (B,H,S).
  void differentiate(const score_tile& t, std::int64_t row, std::int64_t k0) {
    if (h_.masked) h_.mask(l_, b_, k0, t.keys, mask_);
    if (h_.dropout.on) {
      kept_words kept;
      kept.draw(l_, h_.dropout, row, k0, t.keys);
      const float factor = h_.dropout.factor;
      for (std::int64_t q = 0; q < t.width(); q += lanes)
        differentiate(t, q, [&](const vector& x, std::int64_t k) ISOTOPE_INLINE_LAMBDA { return kept.left_of(x * factor, k, q); });
    } else {
      for (std::int64_t q = 0; q < t.width(); q += lanes)
        differentiate(t, q, [](const vector& x, std::int64_t) ISOTOPE_INLINE_LAMBDA { return x; });
    }
  }
  /// The same for the vector of queries from q on; left(x, k) applies dropout to the value x of key k.
  template <class Left> ISOTOPE_INLINE void differentiate(const score_tile& t, std::int64_t q, const Left& left) {
    const vector lse = load_vector(lse_ + q), delta = load_vector(delta_ + q), scale = lanewise::all(h_.scale);
    const std::int64_t keys = t.made(q), stale = t.stale(q), clear = t.clear(q);
    struct pair {
      vector p, ds;
    };
    const auto of = [&](std::int64_t k, bool some_hidden) ISOTOPE_INLINE_LAMBDA {
      const vector base = h_.masked ? mask_[k] - lse : -lse;
      vector p = lanewise::weight(lanewise::madd(load_vector(p_ + k * block + q), scale, base));
      if (some_hidden) p = hide_from(hide(p, k + t.shift - q, 0.0f), smaller(lanes, k + t.shift + t.window - q), 0.0f);
      return pair{left(p, k), scale * (p * (left(load_vector(ds_ + k * block + q), k) - delta))};
    };
    const auto each = [&](std::int64_t k, bool some_hidden) ISOTOPE_INLINE_LAMBDA {
      const pair a = of(k, some_hidden);
      if constexpr (Scores::per_step == 2) {  // a row of bf16 overwrites vectors of f32 only after they have been read
        const bool alone = k + 1 == keys;
        const pair b = alone ? pair{} : of(k + 1, some_hidden);
        const auto ds = Scores::round(a.ds), next = Scores::round(b.ds);
        Scores::put_row(p_, k, q, Scores::round(a.p));
        Scores::put_row(ds_, k, q, ds);
        if (!alone) {
          Scores::put_row(p_, k + 1, q, Scores::round(b.p));
          Scores::put_row(ds_, k + 1, q, next);
        }
        Scores::put_pairs(ds_pairs_ + k / 2 * block + q, ds, next);
      } else {
        put_vector(p_ + k * block + q, a.p);
        put_vector(ds_ + k * block + q, a.ds);
      }
    };
    std::int64_t k = 0;
    for (; k < stale; k += Scores::per_step) each(k, true);
    for (; k + Scores::per_step <= clear; k += Scores::per_step) each(k, false);
    for (; k < keys; k += Scores::per_step) each(k, true);
  }

  const launch& l_;
  const portable::attention_heads& h_;
  std::int64_t b_, group_, width_;
  std::size_t first_;                               // operand index of y; lse and dy follow
  float *p_, *ds_, *ds_pairs_, *room_;              // (keys, queries) for the first three; buffers for rows
  float *dk_, *dv_;                                 // (T, D)
  std::int64_t dk_stride_, dv_stride_, begun_ = 0;  // begun_: the sums of keys before it have been started
  bool direct_;
  alignas(64) float delta_[block] = {}, lse_[block], mask_[block];
};

template <class P> struct attention_grad_of {
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_grad<f32_scores>::scratch(s); }
  static void run(const launch& l) {
    const portable::attention_heads h(l);
    const std::size_t keys = h.packed ? 0 : 1, values = h.packed ? 0 : 2, dy = (h.packed ? 1u : 3u) + (h.masked ? 1u : 0u) + 2;
    if constexpr (scores_in_pairs<P>)
      if (in_pairs(l, {0, keys, values, dy}, h.D)) return attention_grad<pair_scores>::run(l);
    attention_grad<f32_scores>::run(l);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::attention_grad, P, kernels::native> : native::attention_grad_of<P> {};
}  // namespace isotope::cpu
