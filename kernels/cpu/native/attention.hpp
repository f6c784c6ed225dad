#pragma once
/// Bound by multiply-adds; with 64 queries x 64 keys, exp takes a fifth of the time. Blocks are as in the portable kernel. Scores are computed
/// transposed, keys by queries: maximum, sum and exp run along vectors of queries, keys and values are read in place, and the second gemm reads its
/// left operand column by column. Blocks above the diagonal and before the window are skipped; of a block on the diagonal, only register tiles that a
/// query sees are computed. Source: Dao 2023, arXiv:2307.08691.
#include <limits>

#include <isotope/kernels/cpu/math/log.hpp>
#include <isotope/kernels/cpu/native/attention/fetched_rows.hpp>
#include <isotope/kernels/cpu/native/attention/rows.hpp>
#include <isotope/kernels/cpu/native/attention/score_gemm.hpp>
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/math/weight.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Scores> class attention {
 public:
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const auto n = op::attention_sizes::of(s);
    return 4 * slice_floats(n.D) * smaller(n.B * n.H * divide_up(n.S, block), portable::max_workers);
  }
  static void run(const launch& l) {
    const portable::attention_heads h(l);
    const std::int64_t blocks = divide_up(h.S, block), heads = h.B * h.H;
    portable::for_uneven_tasks(
        l, blocks * heads, h.pairs() * (double(h.D) / 50.0 + 0.4 + h.dropout_cost()), [&](std::int64_t t, int slice) {
          const std::int64_t i = blocks - 1 - t / heads, b = t % heads / h.H, head = t % h.H;  // the longest rows come first
          block_of(l, h, b, head, i * block, static_cast<float*>(l.scratch) + slice * slice_floats(h.D));
        });
  }
  /// Returns the size of scores, queries, results, keys and values of a block.
  static constexpr std::int64_t slice_floats(std::int64_t D) { return block * (block + 4 * whole(D, lanes)); }
  /// Computes the block of queries of one head from q0 on, and the logs of their denominators if those are an output.
  static void block_of(const launch& l, const portable::attention_heads& h, std::int64_t b, std::int64_t head, std::int64_t q0,
                       float* slice) {
    attention(l, h, b, head, q0, slice).all();
  }

 private:
  static constexpr std::int64_t block = score_tile::block;
  static constexpr bool in_tiles = requires { typename Scores::unit; };  // results are (D, queries)
  static_assert(block == portable::attention_heads::block);
  static constexpr int at_once = 4;  // keys whose weights are computed in step
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  /// Attention of the queries of one head from q0 on.
  attention(const launch& l, const portable::attention_heads& h, std::int64_t b, std::int64_t head, std::int64_t q0, float* slice)
      : l_(l),
        h_(h),
        b_(b),
        head_(head),
        q0_(q0),
        n_(smaller(block, h.S - q0)),
        width_(whole(h.D, lanes)),
        scores_(slice),
        query_(scores_ + block * block),
        result_(query_ + block * width_),
        key_room_(result_ + block * width_),
        value_room_(key_room_ + block * width_) {}

  void all() {
    for (std::int64_t q = 0; q < block; ++q) {
      top_[q] = -infinity;
      sum_[q] = 0;
    }
    if constexpr (in_tiles) multiply_tiles();
    else multiply_all();
    finish();
  }
  void multiply_all() {
    const std::int64_t group = head_ / (h_.H / h_.G);
    const auto [first, last] = h_.seen(q0_, n_);
    if (last == 0) __builtin_memset(result_, 0, std::size_t(block * width_) * sizeof(float));
    const panel query = Scores::transposed(h_.rows(l_.in, 0, b_, head_).from_row(q0_), n_, h_.D, query_);
    const auto keys = h_.rows(l_.in, 1, b_, group), values = h_.rows(l_.in, 2, b_, group);
    for (std::int64_t k0 = first; k0 < last; k0 += block) {
      const score_tile t = score_tile_of(h_, q0_, n_, k0, last);
      const auto key = Scores::on_left(keys.from_row(k0), t.keys, h_.D, key_room_);
      const panel value = Scores::on_right(values.from_row(k0), t.keys, h_.D, value_room_);
      const coming_block coming(l_, h_, b_, head_, q0_, n_, k0, first, last);
      score_gemm<Scores>(key, t.keys, query, scores_, block, false, [&](std::int64_t k, std::int64_t rows) {
        coming.keys.fetch(k, rows);
        coming.values.fetch(k, rows);
        return tile_part{0, h_.D, t.first_made(k)};
      });
      soften(t, k0, k0 > first);
      score_gemm<Scores>(Scores::by_query(scores_), n_, value, result_, width_, k0 > first, [&](std::int64_t q, std::int64_t rows) {
        coming.queries.fetch(q, rows);
        coming.results.fetch_to_write(q, rows);
        return tile_part{0, t.seen(q + rows), 0};
      });
    }
  }
  void multiply_tiles() {
    const std::int64_t queries_of = h_.H / h_.G, columns = whole(n_, lanes);  // heads of queries that share keys and values
    const auto [first, last] = h_.seen(q0_, n_);
    if (last == 0) __builtin_memset(result_, 0, std::size_t(block * width_) * sizeof(float));
    const typename Scores::unit held;
    Scores::take_queries(h_.rows(l_.in, 0, b_, head_).from_row(q0_), n_, h_.D, query_);
    const auto keys = h_.rows(l_.in, 1, b_, head_ / queries_of), values = h_.rows(l_.in, 2, b_, head_ / queries_of);
    for (std::int64_t k0 = first; k0 < last; k0 += block) {
      const score_tile t = score_tile_of(h_, q0_, n_, k0, last);
      Scores::multiply(keys.from_row(k0), t.keys, query_, columns, h_.D, key_room_, scores_);
      soften(t, k0, k0 > first);
      Scores::add_values(values.from_row(k0), t.keys, scores_, columns, h_.D, value_room_, result_, k0 > first);
    }
  }

  /// scores = exp(scale scores + mask - new maximum), without what is dropped. Results under the old maximum, if `some`, are scaled down.
  void soften(const score_tile& t, std::int64_t k0, bool some) {
    const float scale = prepared(t, k0);
    if (h_.dropout.on) {
      kept_words kept;
      kept.draw(l_, h_.dropout, (b_ * h_.H + head_) * h_.S + q0_, k0, t.keys);
      for (std::int64_t q = 0; q < t.width(); q += lanes)
        weigh(t, q, scale, [&](const vector& e, std::int64_t k) ISOTOPE_INLINE_LAMBDA { return kept.left_of(e, k, q); });
    } else {
      for (std::int64_t q = 0; q < t.width(); q += lanes)
        weigh(t, q, scale, [](const vector& e, std::int64_t) ISOTOPE_INLINE_LAMBDA { return e; });
    }
    if (!some) return;
    if constexpr (in_tiles) {
      for (std::int64_t q = 0; q < t.width(); q += lanes)
        for (std::int64_t d = 0; d < h_.D; ++d)
          put_vector(result_ + d * block + q, load_vector(result_ + d * block + q) * load_vector(shrink_ + q));
      return;
    }
    for (std::int64_t q = 0; q < n_; ++q)
      if (shrink_[q] != 1) scale_row(result_ + q * width_, shrink_[q], width_);
  }

  /// Hides what causal queries do not see and adds the mask. Returns the factor by which scores are still to be multiplied.
  float prepared(const score_tile& t, std::int64_t k0) const {
    float scale = h_.scale;
    if (h_.masked || !(scale > 0)) {  // otherwise the largest unscaled score gives the largest score
      alignas(64) float mask[block];
      h_.mask(l_, b_, k0, t.keys, mask);
      for (std::int64_t k = 0; k < t.keys; ++k)
        for (std::int64_t q = t.first_made(k); q < t.width(); q += lanes) {
          float* s = scores_ + k * block + q;
          put_vector(s, lanewise::madd(load_vector(s), lanewise::all(scale), lanewise::all(mask[k])));
        }
      scale = 1;
    }
    for (std::int64_t q = 0; q < t.width(); q += lanes) {
      for (std::int64_t k = t.clear(q); k < t.made(q); ++k) {
        float* s = scores_ + k * block + q;
        put_vector(s, hide(load_vector(s), k + t.shift - q, -infinity));
      }
      for (std::int64_t k = 0; k < t.stale(q); ++k) {
        float* s = scores_ + k * block + q;
        put_vector(s, hide_from(load_vector(s), k + t.shift + t.window - q, -infinity));
      }
    }
    return scale;
  }

  /// Computes the weights of the vector of queries from q on; `left` applies dropout to those that replace the scores.
  template <class Left> ISOTOPE_INLINE void weigh(const score_tile& t, std::int64_t q, float scale, const Left& left) {
    const std::int64_t keys = t.made(q);
    const vector old = load_vector(top_ + q);
    vector most[4] = {lanewise::all(-infinity), lanewise::all(-infinity), lanewise::all(-infinity), lanewise::all(-infinity)};
    std::int64_t k = 0;
    for (; k + 4 <= keys; k += 4) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) most[i] = lanewise::larger(load_vector(scores_ + (k + i) * block + q), most[i]);
    }
    for (; k < keys; ++k) most[0] = lanewise::larger(load_vector(scores_ + k * block + q), most[0]);
    const vector found = lanewise::larger(lanewise::larger(most[0], most[1]), lanewise::larger(most[2], most[3])) * scale,
                 top = lanewise::larger(found, old);
    const vector base = top == -infinity ? lanewise::all(0.0f) : top, shrink = lanewise::weight(old - base);
    vector sum = load_vector(sum_ + q) * shrink;
    const auto weight = [&](std::int64_t i) ISOTOPE_INLINE_LAMBDA {
      const vector e = lanewise::weight(lanewise::madd(load_vector(scores_ + i * block + q), lanewise::all(scale), -base));
      sum += e;
      return left(e, i);
    };
    if constexpr (in_tiles && lanewise::has_pieces) {
      const vector slope = lanewise::all(scale), zero = -base;
      for (k = 0; k + at_once <= keys; k += at_once) put_weights<at_once>(k, q, slope, zero, sum, left);
      for (; k + 2 <= keys; k += 2) put_weights<2>(k, q, slope, zero, sum, left);
      if (k < keys) put_weights<1>(k, q, slope, zero, sum, left);
    } else if constexpr (Scores::per_step == 2) {  // row k/2 of pairs overwrites scores only after row k of scores has been read
      for (k = 0; k + 2 <= keys; k += 2) {
        const auto first = Scores::round(weight(k)), second = Scores::round(weight(k + 1));
        Scores::put_pairs(scores_ + k / 2 * block + q, first, second);
      }
      if (k < keys) Scores::put_pairs(scores_ + k / 2 * block + q, Scores::round(weight(k)), rounded_vector{});
    } else {
      for (k = 0; k < keys; ++k) put_vector(scores_ + k * block + q, weight(k));
    }
    if constexpr (in_tiles)
      for (k = divide_up(keys, 2); k < whole(t.keys, Scores::terms) / 2; ++k) put_vector(scores_ + k * block + q, vector{});
    put_vector(top_ + q, top);
    put_vector(sum_ + q, sum);
    put_vector(shrink_ + q, shrink);
  }
  /// The weights e^(slope score + zero) of keys k to k + N - 1, as pairs of keys. They replace scores that have been read.
  template <int N, class Left>
  ISOTOPE_INLINE void put_weights(std::int64_t k, std::int64_t q, const vector& slope, const vector& zero, vector& sum, const Left& left) {
    vector e[N];
    lanewise::in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA {
      e[i] = lanewise::madd(load_vector(scores_ + (k + std::int64_t(i)) * block + q), slope, zero);
    });
    lanewise::short_weights(e);
#pragma GCC unroll 8
    for (int i = 0; i < N; i += 2) {
      sum += e[i];
      const auto first = Scores::round(left(e[i], k + i));
      rounded_vector second{};
      if (i + 1 < N) {
        sum += e[i + 1];
        second = Scores::round(left(e[i + 1], k + i + 1));
      }
      Scores::put_pairs(scores_ + (k + i) / 2 * block + q, first, second);
    }
  }
  void finish() {
    alignas(64) float logs[block], factor[block];
    if (l_.out.size() > 1) math::log(sum_, logs, block);
    for (std::int64_t q = 0; q < block; q += lanes) {
      const vector sum = load_vector(sum_ + q);
      put_vector(factor + q, sum == 0.0f ? lanewise::all(0.0f) : lanewise::all(h_.dropout.factor) / sum);
    }
    const auto y = h_.rows(l_.out[0], b_, head_).from_row(q0_);
    float* lse = l_.out.size() > 1 ? l_.out[1].as<float>() + (b_ * h_.H + head_) * h_.S + q0_ : nullptr;
    if constexpr (in_tiles) Scores::store(y, n_, result_, factor, h_.D);
    for (std::int64_t q = 0; q < n_; ++q) {
      if constexpr (!in_tiles) store_row<Scores>(y, q, result_ + q * width_, h_.D, factor[q]);
      if (lse != nullptr) lse[q] = sum_[q] == 0 ? -infinity : top_[q] + logs[q];
    }
  }

  const launch& l_;
  const portable::attention_heads& h_;
  std::int64_t b_, head_, q0_, n_, width_;
  float *scores_, *query_, *result_, *key_room_, *value_room_;  // (keys, queries), (D, queries), (queries, D), two buffers for (keys, D)
  alignas(64) float top_[block], sum_[block],
      shrink_[block];  // per query: the largest score, the sum of weights, the factor that a new maximum puts on old sums
};

template <class P> struct attention_of {
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention<f32_scores>::scratch(s); }
  static void run(const launch& l) {
    const portable::attention_heads h(l);
    const std::size_t keys = h.packed ? 0 : 1, values = h.packed ? 0 : 2;
    if constexpr (scores_in_pairs<P>)
      if (in_pairs(l, {0, keys, values}, h.D)) return attention<pair_scores>::run(l);
    attention<f32_scores>::run(l);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::attention, P, kernels::native> : native::attention_of<P> {};
}  // namespace isotope::cpu
