/// Small encoders as launches of their own: which plans become them is checked anywhere, and their results, against those of separate launches, on a GPU of compute capability 9.0.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/backend/cuda/direct_launches.hpp>
#include <isotope/isotope.hpp>
#include <isotope/kernels/cuda/joined/encoder.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cmath>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace isotope::cuda {
namespace encoder_test {

using bf16 = target<backend::cuda, precision::bf16, kernels::native>;
constexpr model::bert small{2, 12, 384, 1536, 1009, 160};

struct kept final : constant_store, code_store {
  std::uint64_t keep(std::span<const std::byte>) override { return 1 << 20; }
  const device_code* keep(std::string_view name, std::string) override {
    return &all.emplace_back(device_code{.name = names.emplace_back(name), .source = {}, .bytes = {}});
  }
  std::deque<device_code> all;
  std::deque<std::string> names;
};
device_limits hopper() {
  device_limits d;
  d.compute = 90, d.multiprocessors = 132, d.shared_bytes = 227 << 10;
  return d;
}
/// A plan at addresses, and its launches.
struct launches {
  kept store;
  std::vector<step> steps;
  std::vector<operand> operands;
  std::vector<micro_op> body;
  plan_view plan;
  region_addresses base;
  device_limits device;
  std::vector<dispatch> all;
  std::string why;
  bool device_refuses = false;

  template <class Model> static dynamic_plan planned(const Model& m, bool batch_invariant) {
    auto p = plan_inference<bf16>(m, 0, true, false, nullptr, nullptr, batch_invariant);
    EXPECT_TRUE(p.ok()) << (p ? std::string() : p.error().line());
    return *std::move(p);
  }
  /// Joins the launches after `change`.
  template <class Model, class Change>
  launches(const Model& m, const device_limits& d, bool batch_invariant, const Change& change, bool together = false) : device(d) {
    const dynamic_plan made = planned(m, batch_invariant);
    plan = made;
    steps.assign(plan.steps.begin(), plan.steps.end());
    operands.assign(plan.operands.begin(), plan.operands.end());
    body.assign(plan.micro_ops.begin(), plan.micro_ops.end());
    plan.steps = steps, plan.operands = operands, plan.micro_ops = body;
    std::uint64_t next = std::uint64_t(1) << 40;
    for (std::size_t k = 0; k < base.at.size(); ++k) base.at[k] = next, next += std::uint64_t(plan.totals.region[k] + 4095) / 4096 * 4096;
    base.scalars = next;
    all = cuda::record(plan, {kernel_table<bf16>, code_of<bf16>(), {}}, base, {}, device, phase_always, store, store);
    change(*this);
    const small_encoder encoder(plan, base, device);
    why = encoder.why();
    device_refuses = encoder.device_refuses();
    if (why.empty()) encoder.join(all, scratch, together);
  }
  explicit launches(const model::bert& b, int tokens, int texts = 1, const device_limits& d = hopper(), bool batch_invariant = false,
                    bool together = false)
      : launches(model::bert_embeddings_of{b, tokens, texts}, d, batch_invariant, [](launches&) {}, together) {}
  static launches shared(const model::bert& b, int tokens, int texts = 1) { return launches(b, tokens, texts, hopper(), false, true); }
  std::vector<std::string> names() const {
    std::vector<std::string> n;
    for (const dispatch& x : all) n.emplace_back(x.function);
    return n;
  }
  operand& in(std::size_t i, int k) { return operands[std::size_t(steps[i].operands + k)]; }
  static constexpr std::uint64_t scratch = std::uint64_t(1) << 50;
};

/// Each step of the plan is done once, launches fit the device, and those that touch the same memory wait for each other.
void check(const launches& l) {
  std::vector<int> done(l.steps.size());
  for (const dispatch& d : l.all) {
    ++done[std::size_t(d.step)];
    for (const auto k : d.also) ++done[std::size_t(k)];
    EXPECT_LE(d.arguments.size(), dispatch::argument_limit);
    EXPECT_LE(d.count.shared_bytes, hopper().shared_bytes);
    for (const auto* ranges : {&d.reads, &d.writes})
      for (const range& r : *ranges)
        if (r.first >= launches::scratch) { EXPECT_LE(r.end, launches::scratch + std::uint64_t(small_encoder::scratch_bytes)); }
    for (const tensor_map& m : d.maps) {
      EXPECT_EQ(m.address % 16, 0u);
      EXPECT_LE(m.argument_offset + 128, d.arguments.size());
      EXPECT_EQ(std::int64_t(m.box[0]) * m.box[1] * m.box[2] * 2, gpu::encode_piece_bytes(384));
    }
  }
  EXPECT_EQ(done, std::vector<int>(l.steps.size(), 1));
  EXPECT_TRUE(find_hazards(l.all, graph_edges(l.all)).empty());
}

TEST(cuda_encoder, takes_the_place_of_all_launches) {
  for (const int tokens : {1, 16, 17, 32, 33, 112, 113, 128}) {
    SCOPED_TRACE(tokens);
    const launches l(small, tokens);
    ASSERT_EQ(l.why, "");
    std::vector<std::string> wanted;
    if (tokens <= 16) wanted = {"encode_384_16"};
    else if (tokens <= 112) wanted = {"encode_384_16", "encode_384_16", "encode_384_16", "encode_pool_384"};
    else wanted = {"encode_384_24", "encode_384_24", "encode_384_24", "encode_pool_384"};
    EXPECT_EQ(l.names(), wanted);
    check(l);
    const auto early = early_starts(l.all, graph_edges(l.all), hopper());
    EXPECT_EQ(early[0], 0);
    for (std::size_t i = 1; i < early.size(); ++i) EXPECT_EQ(early[i], 1) << "a launch waits for the one before alone: " << i;
  }
  model::bert deep = small;
  deep.layers = 13;
  EXPECT_EQ(launches(deep, 16).all.size(), 3u) << "a launch has six layers at most";
}
TEST(cuda_encoder, has_one_launch_for_all_clusters_where_the_device_has_room_for_them) {
  model::bert deep = small;
  deep.layers = 13;
  std::uint64_t before = 0;
  for (const int tokens : {17, 64, 112, 128}) {
    SCOPED_TRACE(tokens);
    const std::string name = tokens <= 112 ? "encode_384_16" : "encode_384_24";
    EXPECT_EQ(launches::shared(small, tokens).names(), std::vector<std::string>{name});
    const auto l = launches::shared(deep, tokens);
    EXPECT_EQ(l.names(), (std::vector<std::string>{name, name, name})) << "a launch has six layers at most";
    check(l);
    std::uint64_t counts = 0;
    for (const dispatch& d : l.all) {
      EXPECT_FALSE(d.starts_early) << "clusters that wait for each other do not wait for other launches, too";
      EXPECT_TRUE(d.count.together);
      gpu::encode_arguments a;
      std::memcpy(&a, d.arguments.data(), sizeof a);
      EXPECT_EQ(a.tiles, std::int32_t(d.count.x / d.count.cluster));
      EXPECT_GE(a.counts, launches::scratch + std::uint64_t(small_encoder::zeros_at));
      EXPECT_EQ(a.counts, counts == 0 ? a.counts : counts) << "launches go on counting";
      counts = a.counts;
    }
    EXPECT_NE(counts, before) << "others than with another number of clusters, which do not all take part";
    before = counts;
  }
  EXPECT_FALSE(launches::shared(small, 16).all[0].count.together) << "one cluster waits for no other";
}
TEST(cuda_encoder, reads_ids_and_writes_vectors_in_the_memory_of_the_host) {
  for (const int tokens : {16, 32, 128}) {
    const launches l(small, tokens, 2);
    const auto region = [&](value_kind k) { return range(l.base[k], l.plan.totals.region[std::size_t(k)]); };
    std::vector<std::byte> up(1 << 16), down(1 << 16);
    dispatch in, out;
    in.copy = {up.data(), region(value_kind::input).first, region(value_kind::input).bytes(), true};
    out.copy = {down.data(), region(value_kind::output).first, region(value_kind::output).bytes(), false};
    std::vector<dispatch> all = l.all;
    all.insert(all.begin(), in);
    all.push_back(out);
    const direct_launches direct(all);
    ASSERT_EQ(direct.launches.size(), l.all.size()) << tokens;
    gpu::encode_arguments before, after;
    std::memcpy(&before, l.all[0].arguments.data(), sizeof before);
    std::memcpy(&after, direct.launches[0].arguments.data(), sizeof after);
    const auto host = [](const host_copy& c, std::uint64_t at) {
      return std::uint64_t(reinterpret_cast<std::uintptr_t>(c.host)) + at - c.device;
    };
    EXPECT_EQ(after.word_ids, host(in.copy, before.word_ids));
    EXPECT_EQ(after.place_ids, host(in.copy, before.place_ids));
    EXPECT_EQ(after.starts, host(in.copy, before.starts));
    EXPECT_EQ(after.words, before.words);
    if (tokens <= 16) {
      EXPECT_EQ(after.y, before.y);
      EXPECT_EQ(after.y_host, host(out.copy, before.y));
      continue;
    }
    EXPECT_NE(before.kept_starts, 0u) << "later launches read where texts start in memory of the device";
    gpu::encode_arguments last;
    std::memcpy(&last, direct.launches.back().arguments.data(), sizeof last);
    EXPECT_EQ(last.starts, before.kept_starts);
    EXPECT_EQ(last.y_host, host(out.copy, last.y));
  }
}
TEST(cuda_encoder, is_left_out_with_a_reason_for_everything_that_its_kernels_do_not_take) {
  const auto why = [](const model::bert& b, int tokens, int texts = 1, const device_limits& d = hopper(), bool batch_invariant = false) {
    const launches l(b, tokens, texts, d, batch_invariant);
    EXPECT_TRUE(l.why.empty() || l.all.size() > 10);
    const bool plans_fit = tokens <= 128 && texts <= 64 && !batch_invariant && b == small;
    EXPECT_EQ(l.device_refuses, plans_fit && !l.why.empty()) << l.why;
    return l.why;
  };
  EXPECT_EQ(why(small, 128, 16), "");
  EXPECT_EQ(why(small, 129), "a small encoder has at most 128 rows");
  EXPECT_EQ(why(small, 128, 65), "a small encoder has at most 64 texts");
  EXPECT_EQ(why(small, 16, 1, hopper(), true), "rows are to have the same bits in every batch");
  constexpr auto sizes = "there are kernels of small encoders for 384 columns, 1536 hidden values and 12 heads";
  EXPECT_EQ(why({2, 12, 768, 3072, 1009, 160}, 16), sizes);
  EXPECT_EQ(why({2, 6, 384, 1536, 1009, 160}, 16), sizes);
  EXPECT_EQ(why({2, 12, 384, 768, 1009, 160}, 16), sizes);
  device_limits other = hopper();
  other.compute = 100;
  EXPECT_EQ(why(small, 16, 1, other), "small encoders need Hopper's tensor cores");
  other = hopper();
  other.switches.no_matrix_units = true;
  EXPECT_EQ(why(small, 16, 1, other), "small encoders need Hopper's tensor cores");
  other = hopper();
  other.multiprocessors = 78;
  EXPECT_EQ(why(small, 16, 1, other), "the device has no room for a cluster of a small encoder");
  other = hopper();
  other.shared_bytes = 100 << 10;
  EXPECT_EQ(why(small, 16, 1, other), "the device has no room for a cluster of a small encoder");
}
TEST(cuda_encoder, is_left_out_where_any_step_does_something_else) {
  constexpr auto none = "the plan is no encoder with a norm behind each half";
  const auto with = [](const auto& change) { return launches(model::bert_embeddings_of{small, 16, 2}, hopper(), false, change).why; };
  ASSERT_EQ(with([](launches&) {}), "");
  EXPECT_EQ(launches(model::bert_features_of{small, 16, 2}, hopper(), false, [](launches&) {}).why, none) << "rows are not pooled";
  EXPECT_EQ(
      launches(model::bert_embeddings_of{.size = small, .tokens = 16, .sequences = 2, .types = true}, hopper(), false, [](launches&) {})
          .why,
      none)
      << "each token has a type of its own";
  // Steps of the first layer: 4 qkv, 5 attention, 6 projection, 7 norm, 8 and 9 the MLP, 10 norm.
  for (const std::size_t i : {4u, 6u, 8u, 9u}) {
    EXPECT_EQ(with([i](launches& l) { l.steps[i].attr.f[0] = 2; }), none) << "the product is scaled: " << i;
    EXPECT_EQ(with([i](launches& l) { l.steps[i].attr.i[5] = 1; }), none) << "rows are rounded to 8 bits: " << i;
    EXPECT_EQ(with([i](launches& l) { l.in(i, 1).type = dtype::f16; }), none) << i;
    EXPECT_EQ(with([i](launches& l) { l.in(i, 1).strides = {l.in(i, 1).dims[1], 1}; }), none) << "weights have the other order: " << i;
    EXPECT_EQ(with([i](launches& l) { l.in(i, 0).at += 768; }), none) << i;
    EXPECT_EQ(with([i](launches& l) { l.body[std::size_t(l.steps[i].body)].op = &info<op::gelu_tanh>; }), none) << i;
  }
  for (const std::size_t i : {6u, 9u}) EXPECT_EQ(with([i](launches& l) { l.in(i, 3).at += 768; }), none) << "another residual: " << i;
  EXPECT_EQ(with([](launches& l) { l.body[std::size_t(l.steps[8].body + 1)].op = &info<op::gelu_tanh>; }), none);
  EXPECT_EQ(with([](launches& l) { l.steps[5].attr.i[1] = 1; }), none) << "causal";
  EXPECT_EQ(with([](launches& l) { l.steps[5].attr.i[0] = 6; }), none) << "heads of another layer";
  EXPECT_EQ(with([](launches& l) { std::swap(l.in(5, 0).at, l.in(5, 1).at); }), none) << "keys for queries";
  EXPECT_EQ(with([](launches& l) { l.steps[7].attr.f[0] = 1e-5; }), none) << "norms have different constants";
  EXPECT_EQ(with([](launches& l) { l.in(10, 0).at += 768; }), none);
  EXPECT_EQ(with([](launches& l) { l.in(18, 1).at += 4; }), none) << "other texts are pooled";
  EXPECT_EQ(with([](launches& l) { l.in(2, 0).at = l.in(2, 2).at; }), none) << "a table is added twice";
}

/// Vectors of texts on a device.
class on_a_device {
 public:
  on_a_device(int vocab, int tokens, device<bf16> on, session<bf16> loaded)
      : vocab_(vocab), tokens_(tokens), device_(std::move(on)), session_(std::move(loaded)) {}
  static result<on_a_device> make(const model::bert& b, int tokens, int texts, pooling_kind pooling, bool joined,
                                  const std::string& variant = {}, bool together = true, bool initialised = true) {
    auto o = cuda_test::test_options();
    o.diagnose.no_encoder = !joined;
    o.diagnose.no_together = !together;
    o.diagnose.variant = variant;
    auto plan = plan_inference<bf16>(model::bert_embeddings_of{b, tokens, texts, pooling}, 0, true);
    if (!plan) return plan.error();
    auto d = device<bf16>::open(o);
    if (!d) return d.error();
    auto s = d->load(*std::move(plan));
    if (!s) return s.error();
    if (initialised) s->initialize(11);
    if (auto r = s->status(); !r) return r.error();
    return on_a_device(b.vocab, tokens, *std::move(d), *std::move(s));
  }
  /// `in_flight`: as one of several runs that may be in flight, whose inputs and outputs are copied.
  result<std::vector<float>> run(const std::vector<std::int32_t>& starts, int seed, bool in_flight = false) {
    std::vector<std::int32_t> ids, position;
    for (int k = 0; k < tokens_; ++k) ids.push_back(std::int32_t((977 * k + 131 * seed) % vocab_)), position.push_back((k + seed) % 160);
    if (auto r = session_.set<std::int32_t>("tokens", ids); !r) return r.error();
    if (auto r = session_.set<std::int32_t>("position", position); !r) return r.error();
    if (auto r = session_.set<std::int32_t>("starts", starts); !r) return r.error();
    if (in_flight) session_.collect(session_.submit(step_scalars{}));
    else static_cast<void>(session_.run_plan(0));
    if (auto r = session_.status(); !r) return r.error();
    const auto y = session_.output<bf16::precision::storage>("output");
    if (!y) return y.error();
    std::vector<float> all;
    for (const auto x : *y) all.push_back(float(x));
    return all;
  }
  std::size_t joined_launches() const {
    std::size_t n = 0;
    for (const auto& l : session_.launches()) n += l.code.starts_with("encode_");
    return n;
  }

 private:
  int vocab_, tokens_;
  device<bf16> device_;
  session<bf16> session_;
};
template <class E> std::string line_of(const result<E>& r) { return r ? std::string() : r.error().line(); }
/// Both round the same numbers to bf16 (2^-9 each), separate launches the sums before norms, too, twice a layer: rows of a layer differ by some roundings in quadrature, and those of
/// layers add up in quadrature. In two layers, a head that is left out or a row of another text changes vectors by more than a tenth.
double tolerance(int layers) { return 0.015 * std::sqrt(double(layers)); }

TEST(cuda_encoder, asks_the_driver_how_many_clusters_fit) {
  if (!cuda_test::emulated()) GTEST_SKIP() << "a GPU has its own number";
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  const auto launches_of = [](int clusters) {
    cuda_test::emulator().set_devices({{.compute = 90, .clusters = clusters}});
    const auto one = on_a_device::make(small, 64, 1, pooling_kind::mean, true, {}, true, false);
    return one ? std::int64_t(one->joined_launches()) : -1;
  };
  EXPECT_EQ(launches_of(4), 1);
  EXPECT_EQ(launches_of(3), 4) << "a launch for each layer, one more and one that pools";
  EXPECT_EQ(launches_of(0), 0);
}

TEST(cuda_encoder, gives_the_vectors_of_separate_launches) {
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  model::bert deep = small;
  deep.layers = 26;
  struct sample {
    model::bert size;
    int tokens;
    std::vector<std::int32_t> starts;
    bool emulated = false;  // also where there is no GPU, which takes a second or two
    std::string variant = {};
  };
  const sample samples[] = {{small, 1, {0, 1}},
                            {small, 16, {0, 16}},
                            {small, 16, {0, 5, 5, 12}, true},
                            {small, 16, {3, 9, 14}},
                            {small, 17, {0, 17}},
                            {small, 32, {0, 9, 31}},
                            {deep, 30, {0, 11, 30}},
                            {small, 64, {0, 30, 64}},
                            {small, 128, {0, 128}},
                            {small, 128, {1, 40, 41, 100, 127}},
                            {small, 100, {0, 0, 100, 100}},
                            {deep, 16, {0, 16}},
                            {deep, 40, {0, 30, 40}},
                            {small, 20, {0, 3, 20}, true, "encode_24"},
                            {small, 41, {5, 20, 41}, true},  // the last cluster does not wait for the first one
                            {deep, 100, {0, 5, 60, 100}},
                            {small, 112, {0, 15, 31, 112}},
                            {small, 128, {0, 70, 128}, false, "encode_16"},
                            {small, 65, {0, 23, 48, 48, 62}, true, "encode_24"},
                            {small, 112, {0, 15, 31, 112}, false, "encode_24"},
                            {deep, 40, {0, 30, 40}, false, "encode_24"},
                            {small, 40, {0, 10, 40}, false, "encode_24"},
                            {small, 128, {2, 31, 66, 80}, false}};
  for (const sample& x : samples)
    for (const auto pooling : {pooling_kind::mean, pooling_kind::first}) {
      if (cuda_test::emulated() && (!x.emulated || pooling == pooling_kind::first)) continue;
      const int texts = int(x.starts.size()) - 1;
      SCOPED_TRACE(std::to_string(x.size.layers) + " layers, " + std::to_string(x.tokens) + " tokens, " + std::to_string(texts) +
                   " texts " + x.variant);
      auto one = on_a_device::make(x.size, x.tokens, texts, pooling, true, x.variant),
           apart = on_a_device::make(x.size, x.tokens, texts, pooling, true, x.variant, false),
           other = on_a_device::make(x.size, x.tokens, texts, pooling, false);
      ASSERT_TRUE(one.ok()) << line_of(one);
      ASSERT_TRUE(apart.ok()) << line_of(apart);
      ASSERT_TRUE(other.ok()) << line_of(other);
      const bool several = x.tokens > (x.variant == "encode_24" ? 24 : 16);
      const auto least = std::size_t(x.size.layers + 5) / 6, most = std::size_t(x.size.layers) + 2;
      ASSERT_EQ(apart->joined_launches(), several ? most : least);
      ASSERT_TRUE(one->joined_launches() == least || (several && !cuda_test::emulated() && one->joined_launches() == most));
      ASSERT_EQ(other->joined_launches(), 0u);
      for (int seed = 0; seed < (cuda_test::emulated() ? 1 : 20); ++seed) {
        const auto a = one->run(x.starts, seed), b = other->run(x.starts, seed), again = one->run(x.starts, seed),
                   copied = several && cuda_test::emulated() ? a : one->run(x.starts, seed, true);
        ASSERT_TRUE(a.ok()) << "joined, run " << 2 * seed << ": " << line_of(a);
        ASSERT_TRUE(b.ok()) << "separate launches: " << line_of(b);
        ASSERT_TRUE(again.ok()) << "joined, run " << 2 * seed + 1 << ": " << line_of(again);
        ASSERT_TRUE(copied.ok()) << "joined, in flight: " << line_of(copied);
        EXPECT_EQ(*a, *again) << "the same texts give the same bits";
        EXPECT_EQ(*a, *copied) << "also where inputs and outputs are copied";
        if (several) { EXPECT_EQ(*a, *apart->run(x.starts, seed)) << "and with a launch for each layer"; }
        if (texts == 1) { EXPECT_EQ(*b, *other->run(x.starts, seed, true)) << "separate launches, whose last one writes to the host"; }
        ASSERT_EQ(a->size(), std::size_t(texts) * 384);
        ASSERT_EQ(b->size(), a->size());
        for (int t = 0; t < texts; ++t) {
          double d = 0, n = 0;
          for (std::size_t i = std::size_t(t) * 384; i < std::size_t(t + 1) * 384; ++i)
            d += std::pow(double((*a)[i]) - double((*b)[i]), 2), n += std::pow(double((*b)[i]), 2);
          EXPECT_TRUE(std::sqrt(d) <= tolerance(x.size.layers) * std::sqrt(n)) << "text " << t << ": " << std::sqrt(d / n);
        }
      }
    }
}

}  // namespace encoder_test
}  // namespace isotope::cuda
