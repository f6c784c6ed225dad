// Compares norms, attention, cross-entropy, embedding, sums, copies and updates with the reference kernels.
#include "compare.hpp"

#include <limits>

namespace rows_test {
using namespace isotope_test;
using precision::bf16;
using precision::f32;

constexpr double infinity = std::numeric_limits<double>::infinity();
/// The tolerance: f32 arithmetic, and for bf16 one rounding to 8 bits.
template <class P> constexpr double step = P::type == dtype::bf16 ? 0x1p-8 : 3e-6;

template <class... A> std::vector<array> outputs(A&&... a) {
  std::vector<array> r;
  (r.push_back(std::forward<A>(a)), ...);
  return r;
}
array make(const shape& s, dtype t, std::uint64_t seed, double low = -1, double high = 1) { return array::random(s, t, seed, low, high); }
array ids(const shape& s, std::int64_t limit, std::uint64_t seed) {
  array r(s, dtype::i32);
  for (std::int64_t i = 0; i < r.count(); ++i) r.set(i, double(std::int64_t(philox(seed, std::uint64_t(i), 0, 3)[0]) % limit));
  return r;
}

template <class P> void norms(std::int64_t rows, std::int64_t C) {
  const dtype t = P::type;
  const array x = make({rows, C}, t, 1, 3, 5), w = make({C}, t, 2), b = make({C}, t, 3), dy = make({rows, C}, t, 4);
  const attributes a = op::layer_norm::constants{.epsilon = 1e-5};  // rms_norm has the same constants
  op_case forward({x.v, w.v, b.v}, outputs(array({rows, C}, t), array({rows}, dtype::f32), array({rows}, dtype::f32)), a);
  expect_matches<op::layer_norm, P>(forward, {step<P>, 1e-6, 1e-5});
  const auto stats = forward.run<cpu::kernel<op::layer_norm, P, kernels::reference>>(nullptr);
  op_case back({x.v, w.v, b.v, stats[1].v, stats[2].v, dy.v}, outputs(array({rows, C}, t), array({C}, dtype::f32), array({C}, dtype::f32)),
               a);
  expect_matches<op::layer_norm_grad, P>(back, {2 * step<P>, 1e-5, 1e-5});
  op_case rms({x.v, w.v}, outputs(array({rows, C}, t), array({rows}, dtype::f32)), a);
  expect_matches<op::rms_norm, P>(rms, {step<P>, 1e-6});
  const auto root = rms.run<cpu::kernel<op::rms_norm, P, kernels::reference>>(nullptr);
  op_case rms_back({x.v, w.v, root[1].v, dy.v}, outputs(array({rows, C}, t), array({C}, dtype::f32)), a);
  expect_matches<op::rms_norm_grad, P>(rms_back, {2 * step<P>, 1e-5});
}
TEST(norms, match_the_reference) {
  // Widths around a vector and beyond a block of sums; row counts that are and are not multiples of a group.
  for (auto [rows, C] : {std::array{1, 5}, {2, 7}, {6, 15}, {3, 17}, {40, 128}, {200, 65}, {2100, 33}, {7, 768}, {5, 2113}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << C);
    norms<f32>(rows, C);
    norms<bf16>(rows, C);
  }
}

struct heads {
  std::int64_t B, S, T, H, G, D;
  bool causal, packed, masked;
  double dropout = 0, scale = 0;
  std::int64_t window = 0;
};
template <class P> void attend(heads h) {
  SCOPED_TRACE(testing::Message() << "B " << h.B << " S " << h.S << " T " << h.T << " H " << h.H << " G " << h.G << " D " << h.D
                                  << " causal " << h.causal << " packed " << h.packed << " masked " << h.masked << " dropout " << h.dropout
                                  << " window " << h.window);
  const dtype t = P::type;
  const attributes a = op::attention::constants{.heads = h.H,
                                                .kv_heads = h.G,
                                                .causal = h.causal,
                                                .packed = h.packed,
                                                .masked = h.masked,
                                                .window = h.window,
                                                .scale = h.scale == 0 ? 1 / std::sqrt(double(h.D)) : h.scale,
                                                .dropout = h.dropout};
  const auto drawing = [](op_case& c) {
    c.ordinal = 12;
    c.scalars.seed = 0x123456789abcdef0u;
    c.scalars.counter = 77;
  };
  const array qkv = make({h.B, h.S, (h.H + 2 * h.G) * h.D}, t, 1, -2, 2), q = make({h.B, h.S, h.H * h.D}, t, 2, -2, 2),
              k = make({h.B, h.T, h.G * h.D}, t, 3, -2, 2), v = make({h.B, h.T, h.G * h.D}, t, 4), dy = make({h.B, h.S, h.H * h.D}, t, 5);
  array mask = make({h.B, h.T}, t, 6);
  for (std::int64_t i = 0; i < mask.count(); i += 3) mask.set(i, -infinity);
  // All keys of the first of several batches are masked.
  for (std::int64_t i = 0; i < h.T; ++i) mask.set(i, h.B > 1 ? -infinity : mask.at(i));
  std::vector<cpu::view> in = h.packed ? std::vector{qkv.v} : std::vector{q.v, k.v, v.v};
  if (h.masked) in.push_back(mask.v);
  op_case forward(in, outputs(array({h.B, h.S, h.H * h.D}, t), array({h.B, h.H, h.S}, dtype::f32)), a);
  drawing(forward);
  expect_matches<op::attention, P>(forward, {2 * step<P>, 1e-5});
  const auto r = forward.run<cpu::kernel<op::attention, P, kernels::reference>>(nullptr);
  in.push_back(r[0].v);
  in.push_back(r[1].v);
  in.push_back(dy.v);
  std::vector<array> out;
  for (int i = 0; i < (h.packed ? 1 : 3); ++i) out.emplace_back(in[std::size_t(i)].dims, t);
  op_case back(in, std::move(out), a);
  drawing(back);
  expect_matches<op::attention_grad, P>(back, std::vector<double>(3, 4 * step<P>));
}
TEST(attention, matches_the_reference_in_every_form) {
  for (const heads& h : {heads{2, 64, 64, 4, 4, 32, true, true, false}, heads{1, 1, 1, 1, 1, 4, true, true, false},
                         heads{2, 65, 65, 2, 1, 16, true, true, true}, heads{1, 130, 130, 2, 2, 20, false, true, false},
                         heads{2, 63, 150, 4, 2, 24, true, false, true}, heads{1, 33, 70, 3, 3, 64, false, false, false},
                         heads{1, 1, 129, 4, 4, 32, true, false, false}, heads{2, 65, 65, 2, 1, 16, true, true, true, 0.25},
                         heads{2, 63, 150, 4, 2, 24, true, false, true, 0.1}, heads{1, 130, 130, 2, 2, 20, false, true, false, 0.5}}) {
    attend<f32>(h);
    attend<bf16>(h);
  }
}
TEST(attention, matches_the_reference_around_register_tiles_and_blocks) {
  for (const heads& h : {heads{1, 15, 15, 2, 2, 32, true, true, false}, heads{1, 17, 17, 2, 1, 64, true, true, true},
                         heads{1, 63, 63, 1, 1, 80, true, true, false}, heads{1, 130, 130, 2, 1, 8, true, true, false},
                         heads{1, 7, 9, 1, 1, 256, false, false, false}, heads{1, 66, 66, 1, 1, 33, true, true, false, 0.25},
                         heads{1, 131, 67, 2, 2, 32, false, false, true}, heads{2, 65, 65, 2, 2, 128, true, true, false}}) {
    attend<f32>(h);
    attend<bf16>(h);
  }
}
// The number of past keys ends within a vector or a register tile, and the second block of queries starts in the middle of a block of keys.
TEST(attention, matches_the_reference_after_a_past_of_any_length) {
  for (const std::int64_t past : {1, 5, 8, 13, 16, 31}) {
    attend<f32>({1, 70, 70 + past, 2, 1, 16, true, false, false});
    attend<bf16>({1, 70, 70 + past, 2, 1, 16, true, false, false});
  }
}
// In a window of a single key, the gradients of scores consist of rounding errors only.
TEST(attention, matches_the_reference_in_a_window_of_any_length) {
  for (const std::int64_t n : {2, 7, 15, 16, 17, 31, 63, 64, 65, 100, 128, 150, 1000}) {
    const heads own{1, 150, 150, 2, 1, 16, true, true, false, 0, 0, n}, past{2, 70, 203, 2, 2, 20, true, false, true, 0.25, 0, n};
    attend<f32>(own), attend<bf16>(own), attend<f32>(past), attend<bf16>(past);
  }
}
TEST(attention, matches_the_reference_where_scores_are_scaled_by_a_negative_number) {
  const heads h{1, 20, 40, 2, 2, 16, true, false, false, 0, -0.5};
  attend<f32>(h), attend<bf16>(h);
}

template <class P> void classify(std::int64_t rows, std::int64_t N, std::int64_t V, bool ignored) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << V << " classes of " << N);
  array x = make({rows, N}, P::type, 1, -5, 5);
  if (N > 4096) x.set(4095, 30);  // the largest element comes late, at the end of a vector
  for (std::int64_t i = 0; i < rows * N; ++i)
    if (i % N >= V) x.set(i, std::nan(""));
  const attributes a = op::cross_entropy::constants{.classes = V};
  array targets = ids({rows}, V, 2);
  for (std::int64_t i = 0; i < rows; i += ignored ? 1 : 5) targets.set(i, i % 2 == 0 ? -1 : double(V));
  const array dloss({}, dtype::f32, 1.7);
  op_case forward({x.v, targets.v}, outputs(array({}, dtype::f32), array({rows}, dtype::f32), array({rows}, dtype::f32)), a);
  expect_matches<op::cross_entropy, P>(forward, {1e-5, 0, 1e-5});
  const auto r = forward.run<cpu::kernel<op::cross_entropy, P, kernels::reference>>(nullptr);
  op_case back({x.v, targets.v, r[1].v, r[2].v, dloss.v}, outputs(array({rows, N}, P::type)), a);
  expect_matches<op::cross_entropy_grad, P>(back, {step<P>});
}
TEST(cross_entropy, matches_the_reference) {
  for (auto [rows, N, V] :
       {std::array{1, 1, 1}, {2, 7, 7}, {3, 16, 15}, {2, 17, 17}, {7, 72, 65}, {768, 65, 65}, {33, 1500, 1500}, {5, 50304, 50257}}) {
    classify<f32>(rows, N, V, false);
    classify<bf16>(rows, N, V, false);
    classify<f32>(rows, N, V, true);
  }
}
TEST(cross_entropy, infinite_and_missing_logits_come_through) {
  array x = make({3, 40}, dtype::f32, 1);
  x.set(5, -infinity);
  x.set(45, std::nan(""));
  for (int i = 80; i < 120; ++i) x.set(i, -infinity);
  const array targets = ids({3}, 5, 2);
  attributes a = op::cross_entropy::constants{.classes = 40};
  const auto results = [](std::int64_t n) { return outputs(array({}, dtype::f32), array({n}, dtype::f32), array({n}, dtype::f32)); };
  expect_matches<op::cross_entropy, f32>({{x.v, targets.v}, results(3), a}, {1e-5, 0, 1e-5});
  // The first block of a row contains only -infinity, the next one numbers.
  array late = make({1, 5000}, dtype::f32, 3);
  for (int i = 0; i < 4500; ++i) late.set(i, -infinity);
  a = op::cross_entropy::constants{.classes = 5000};
  const array target = ids({1}, 1, 4);
  array some({1}, dtype::i32, 4900);
  expect_matches<op::cross_entropy, f32>({{late.v, some.v}, results(1), a}, {1e-5, 0, 1e-5});
  expect_matches<op::cross_entropy, f32>({{late.v, target.v}, results(1), a}, {1e-5, 0, 1e-5});
}

template <class P> void look_up(std::int64_t V, std::int64_t C, std::int64_t rows) {
  const array table = make({V, C}, P::type, 1), dy = make({rows, C}, P::type, 2), into = make({V, C}, dtype::f32, 3);
  array at = ids({rows}, V, 4);
  if (rows > 3) {
    at.set(1, -1);
    at.set(2, double(V));
  }
  expect_matches<op::embedding, P>({{table.v, at.v}, outputs(array({rows, C}, P::type))}, {0});
  op_case back({into.v, dy.v, at.v}, outputs(array({V, C}, dtype::f32)));
  back.inout = 1;
  expect_matches<op::embedding_grad, P>(back, {1e-5});
}
TEST(embedding, matches_the_reference) {
  for (auto [V, C, rows] : {std::array{65, 128, 768}, {1, 3, 10}, {300, 70, 1}, {10, 200, 2000}}) {
    look_up<f32>(V, C, rows);
    look_up<bf16>(V, C, rows);
  }
}

template <class P> void reduce(const cpu::view& x, const shape& y, std::int64_t mask, dtype t) {
  const attributes a = op::reduction::constants{.axes = mask, .format = t};
  SCOPED_TRACE(testing::Message() << "axes " << mask);
  expect_matches<op::sum, P>({{x}, outputs(array(y, t)), a}, {t == dtype::bf16 ? 0x1p-8 : 2e-5});
  expect_matches<op::mean, P>({{x}, outputs(array(y, t)), a}, {t == dtype::bf16 ? 0x1p-8 : 2e-5});
}
TEST(sum, matches_the_reference_over_any_axes) {
  const auto check = [&]<class P>(P) {
    const array x = make({5, 70, 33}, P::type, 1);
    for (std::int64_t mask = 0; mask < 8; ++mask) {
      shape y;
      for (int i = 0; i < 3; ++i)
        if (((mask >> i) & 1) == 0) y.push(x.v.dims[i]);
      reduce<P>(x.v, y, mask, P::type);
      reduce<P>(x.v, y, mask, dtype::f32);
    }
    reduce<P>(x.transposed(), {5, 33}, 4, P::type);
    reduce<P>(x.transposed(), {33, 70}, 1, dtype::f32);
    const array tall = make({3000, 40}, P::type, 2), wide = make({2, 40000}, P::type, 3);
    reduce<P>(tall.v, {40}, 1, dtype::f32);
    reduce<P>(wide.v, {2}, 2, dtype::f32);
    reduce<P>(wide.v, {40000}, 1, dtype::f32);
    reduce<P>(wide.v, {}, 3, dtype::f32);
  };
  check(f32{});
  check(bf16{});
}

TEST(softmax, matches_the_reference_along_any_axis) {
  const auto check = [&]<class P>(P) {
    for (const shape& s : {shape{7, 65}, shape{3, 7}, shape{2, 15}, shape{40, 130}, shape{3, 1500}, shape{5, 20, 33}, shape{3, 50257}})
      for (int axis = 0; axis < s.rank; ++axis) {
        const attributes a = op::softmax::constants{.axis = axis};
        array x = make(s, P::type, 1, -4, 4);
        x.set(3, -infinity);
        const array dy = make(s, P::type, 2);
        op_case forward({x.v}, outputs(array(s, P::type)), a), logarithm({x.v}, outputs(array(s, P::type)), a);
        expect_matches<op::softmax, P>(forward, {step<P>});
        expect_matches<op::log_softmax, P>(logarithm, {step<P>});
        const auto y = forward.run<cpu::kernel<op::softmax, P, kernels::reference>>(nullptr);
        expect_matches<op::softmax_grad, P>({{y[0].v, dy.v}, outputs(array(s, P::type)), a}, {2 * step<P>});
        const array logs = make(s, P::type, 3, -6, 0);
        expect_matches<op::log_softmax_grad, P>({{logs.v, dy.v}, outputs(array(s, P::type)), a}, {2 * step<P>});
      }
  };
  check(f32{});
  check(bf16{});
}
TEST(softmax, rows_without_a_finite_number_give_nan) {
  array x({2, 40}, dtype::f32, -infinity);
  x.set(50, std::nan(""));
  const attributes a = op::softmax::constants{.axis = 1};
  expect_matches<op::softmax, f32>({{x.v}, outputs(array({2, 40}, dtype::f32)), a}, {0});
  expect_matches<op::log_softmax, f32>({{x.v}, outputs(array({2, 40}, dtype::f32)), a}, {0});
}

TEST(dropout, draws_the_mask_of_the_reference) {
  const auto check = [&]<class P>(P) {
    for (double p : {0.1, 0.25, 0.999}) {
      const array x = make({50, 331}, P::type, 1);
      const attributes a = op::dropout::constants{.p = p};
      op_case c({x.v}, outputs(array({50, 331}, P::type)), a);
      c.ordinal = 12;
      c.scalars.seed = 0x123456789abcdef0u;
      c.scalars.counter = 77;
      expect_matches<op::dropout, P>(c, {step<P>});
    }
  };
  check(f32{});
  check(bf16{});
}

TEST(rope, matches_the_reference) {
  const auto check = [&]<class P>(P) {
    for (std::int64_t direction : {1, -1}) {
      const array x = make({3, 50, 2, 24}, P::type, 1);
      for (std::int64_t heads : {0, 1}) {
        const attributes a = op::rope::constants{.first = 5, .direction = direction, .heads = heads};
        expect_matches<op::rope, P>({{x.v}, outputs(array({3, 50, 2, 24}, P::type)), a}, {step<P>});
      }
    }
  };
  check(f32{});
  check(bf16{});
}

// Powers of two, convolutions, and real rows of both kinds, with enough rows for three threads.
TEST(transforms, match_the_reference) {
  const auto check = [&]<class P>(P) {
    for (std::int64_t N : {7, 256, 500}) {
      const dtype t = P::type;
      const array x = make({400, N, 2}, t, 1), real = make({400, N}, t, 2), half = make({400, N / 2 + 1, 2}, t, 3);
      for (std::int64_t direction : {-1, 1}) {
        const attributes a = op::fft::constants{.direction = direction, .factor = 0.5};
        expect_matches<op::fft, P>({{x.v}, outputs(array({400, N, 2}, t)), a}, {step<P>});
      }
      const attributes a = op::rfft::constants{.points = N, .factor = 0.5, .inner = 2};
      expect_matches<op::rfft, P>({{real.v}, outputs(array({400, N / 2 + 1, 2}, t)), a}, {step<P>});
      expect_matches<op::irfft, P>({{half.v}, outputs(array({400, N}, t)), a}, {step<P>});
    }
  };
  check(f32{});
  check(bf16{});
}

TEST(copies, match_the_reference_bit_for_bit) {
  const auto check = [&]<class P>(P) {
    const dtype t = P::type;
    const array x = make({4, 50, 90}, t, 1), y = make({4, 7, 90}, t, 2), bias = make({90}, t, 3);
    expect_matches<op::copy, P>({{x.v}, outputs(array({4, 50, 90}, t))}, {0});
    expect_matches<op::copy, P>({{x.transposed()}, outputs(array({4, 90, 50}, t))}, {0});
    attributes a = op::concat::constants{.axis = 1};
    expect_matches<op::concat, P>({{x.v, y.v}, outputs(array({4, 57, 90}, t)), a}, {0});
    expect_matches<op::concat, P>({{x.transposed(), x.transposed()}, outputs(array({4, 180, 50}, t)), a}, {0});
    a = op::pad::constants{.axis = 1, .first = 3, .size = 60};
    expect_matches<op::pad, P>({{x.v}, outputs(array({4, 60, 90}, t, 5)), a}, {0});
    a = op::pad::constants{.axis = 2, .first = 0, .size = 50};
    expect_matches<op::pad, P>({{x.transposed()}, outputs(array({4, 90, 50}, t, 5)), a}, {0});
    for (dtype to : {dtype::f32, dtype::bf16, dtype::f64, dtype::i32, dtype::boolean}) {
      a = op::cast::constants{.to = to};
      expect_matches<op::cast, P>({{x.transposed()}, outputs(array({4, 90, 50}, to)), a}, {0});
      const attributes f = op::fill::constants{.dims = {3, 1000}, .format = to, .x = 1.75};
      expect_matches<op::fill, P>({{}, outputs(array({3, 1000}, to)), f}, {0});
    }
  };
  check(f32{});
  check(bf16{});
}
TEST(copies, casts_from_wide_numbers_round_once) {
  array wide({6}, dtype::f64), whole({6}, dtype::i32);
  const double values[] = {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8 - 0x1p-40, -3e38, 1e300, -0.0, 0x1p-140};
  const double integers[] = {16777217, -2147483648.0, 2147483647, 0x1010001, 0x10101, 3};
  for (int i = 0; i < 6; ++i) {
    wide.set(i, values[i]);
    whole.set(i, integers[i]);
  }
  for (dtype to : {dtype::f32, dtype::bf16, dtype::i32}) {
    const attributes a = op::cast::constants{.to = to};
    expect_matches<op::cast, f32>({{wide.v}, outputs(array({6}, to)), a}, {0});
    expect_matches<op::cast, f32>({{whole.v}, outputs(array({6}, to)), a}, {0});
  }
}

TEST(updates, match_the_reference) {
  const std::int64_t n = 40123;
  for (bool shadow : {false, true})
    for (double clip : {0.0, 0.5}) {
      const array w = make({n}, dtype::f32, 1), m = make({n}, dtype::f32, 2), v = make({n}, dtype::f32, 3, 0, 1),
                  g = make({n}, dtype::f32, 4), s({n}, dtype::bf16);
      const array norm({}, dtype::f32, 3.5), loss({}, dtype::f32, 1);
      const attributes a = op::adamw::constants{.decaying = 30000, .shadow = shadow, .clips = true, .rate_scale = 0.5};
      op_case adam({w.v, m.v, v.v}, outputs(array({n}, dtype::f32), array({n}, dtype::f32), array({n}, dtype::f32)), a);
      op_case plain({w.v, m.v}, outputs(array({n}, dtype::f32), array({n}, dtype::f32)), a);
      for (op_case* c : {&adam, &plain}) {
        c->inout = c == &adam ? 7 : 3;
        if (shadow) {
          c->inout = std::uint8_t(c->inout * 2 + 1);
          c->in.push_back(s.v);
          c->out.emplace_back(shape{n}, dtype::bf16);
        }
        for (const array* x : {&g, &norm, &loss}) c->in.push_back(x->v);
        c->scalars.clip_norm = float(clip);
        c->scalars.weight_decay = 0.1f;
        c->scalars.momentum = 0.9f;
        c->scalars.optimizer_step = 3;
        c->scalars.gradient_scale = 0.25f;
      }
      expect_matches<op::adamw, f32>(adam, {2e-6, 2e-6, 2e-6, 0x1p-8});
      expect_matches<op::sgd, f32>(plain, {2e-6, 2e-6, 0x1p-8});
      const array bad({}, dtype::f32, std::nan(""));
      adam.in[adam.in.size() - 2] = bad.v;
      expect_matches<op::adamw, f32>(adam, {0, 0, 0, 0});
    }
  const array g = make({n}, dtype::f32, 4, -2, 2);
  op_case c({g.v}, outputs(array({}, dtype::f32)));
  c.scalars.gradient_scale = 0.5f;
  expect_matches<op::global_norm, f32>(c, {1e-7});
  op_case clip({g.v}, outputs(array({n}, dtype::f32)));
  clip.inout = 1;
  clip.scalars.gradient_scale = 0.5f;
  clip.scalars.clip_norm = 1;
  clip.scalars.clip_value = 0.3f;
  expect_matches<op::clip_norm, f32>(clip, {1e-6});
  expect_matches<op::clip_value, f32>(clip, {1e-7});
  const array x = make({100, 70}, dtype::bf16, 5), into = make({70, 100}, dtype::f32, 6);
  for (const bool add : {false, true}) {
    op_case a({into.v, x.transposed()}, outputs(array({70, 100}, dtype::f32)));
    a.inout = 1;
    a.accumulate = add ? 1 : 0;
    expect_matches<op::accumulate, bf16>(a, {1e-7});
  }
}
}  // namespace rows_test
