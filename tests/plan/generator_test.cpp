// labels: alone
/// Decoding with caches: it gives the logits of the whole sequence at every position, and a text does not depend on what is decoded beside it.
#include "../allocation_counter.hpp"
#include "outcome.hpp"

#include <isotope/generate/batcher.hpp>
#include <isotope/generate/generator.hpp>
#include <isotope/model/gpt.hpp>

#include <algorithm>
#include <cmath>

using namespace plan_test;

namespace generator_test {

constexpr isotope::model::gpt size{.layers = 2, .heads = 2, .width = 32, .vocab = 29, .context = 24};

inline std::vector<std::int32_t> text(int n) {
  std::vector<std::int32_t> t;
  for (int i = 0; i < n; ++i) t.push_back(std::int32_t(isotope::philox(5, std::uint64_t(i), 0, 0)[0] % unsigned(size.vocab)));
  return t;
}
template <class T> isotope::generator<T> opened_generator(int slots, std::vector<int> buckets, bool bare = false) {
  auto device = bare ? opened_bare<T>(1) : opened<T>(1);
  if (!device) throw std::runtime_error(device.error().line());
  auto g = isotope::generator<T>::open(*device, size, {.slots = slots, .prefill_tokens = std::move(buckets)});
  if (!g) throw std::runtime_error(g.error().line());
  g->initialize(3);
  return *std::move(g);
}
/// Logits (context, V) of the whole text, without caches.
template <class T> std::vector<float> whole(const std::vector<std::int32_t>& tokens) {
  auto s = loaded<T>(*isotope::plan_inference<T>(isotope::model::gpt_logits_of{size, 1, size.context}));
  EXPECT_TRUE(s.set("tokens", std::span<const std::int32_t>(tokens)).ok());
  s.run({}, isotope::phase_always);
  std::vector<float> y;
  const auto logits = s.template output<typename T::precision::storage>("output");
  for (const auto x : *logits) y.push_back(float(x));
  return y;
}
/// |a - b| / |b|, where b is row `row` of (rows, V).
inline double distance(std::span<const float> a, const std::vector<float>& b, std::size_t row) {
  double off = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double want = double(b[row * a.size() + i]), d = double(a[i]) - want;
    off += d * d, norm += want * want;
  }
  return std::sqrt(off / norm);
}
/// Products and attention may sum in another order: for f32 a few roundings of 2^-24 in each of some ten layers, for bf16 of 2^-8.
template <class T> constexpr double tolerance = sizeof(typename T::precision::storage) == 4 ? 1e-5 : 0.06;

template <class T> struct generators : testing::Test {};
TYPED_TEST_SUITE(generators, every_target, target_name);

TYPED_TEST(generators, give_the_logits_of_the_whole_sequence_at_every_position_and_bucket) {
  const auto tokens = text(size.context);
  const auto want = whole<TypeParam>(tokens);
  auto g = opened_generator<TypeParam>(3, {5, 16});
  for (int n = 1; n <= size.context; ++n) {  // one part or several, with and without idle rows
    ASSERT_TRUE(g.begin(n % 3, std::span(tokens).first(std::size_t(n))).ok());
    EXPECT_TRUE(distance(g.logits(n % 3), want, std::size_t(n - 1)) <= tolerance<TypeParam>) << "prefill of " << n;
  }
  ASSERT_TRUE(g.begin(1, std::span(tokens).first(1)).ok());
  ASSERT_TRUE(g.begin(2, std::span(tokens).first(4)).ok());
  for (int n = 1; n < size.context; ++n) {
    const std::int32_t other = n + 3 < size.context ? tokens[std::size_t(n + 3)] : -1;
    ASSERT_TRUE(g.append(std::array<std::int32_t, 3>{-1, tokens[std::size_t(n)], other}).ok());
    EXPECT_TRUE(distance(g.logits(1), want, std::size_t(n)) <= tolerance<TypeParam>) << "decoding of " << n;
    if (other >= 0) { EXPECT_TRUE(distance(g.logits(2), want, std::size_t(n + 3)) <= tolerance<TypeParam>) << "beside it, of " << n + 3; }
  }
}
TYPED_TEST(generators, give_other_logits_for_a_stale_cache_or_a_shifted_position) {
  const auto tokens = text(size.context);
  const auto want = whole<TypeParam>(tokens);
  auto g = opened_generator<TypeParam>(1, {16});
  auto& s = g.loaded();
  ASSERT_EQ(s.states().size(), std::size_t(2 * size.layers));
  std::vector<float> cache(std::size_t(s.states()[0].where.dims.count()));
  for (const bool shifted : {true, false}) {
    ASSERT_TRUE(g.begin(0, std::span(tokens).first(8)).ok());
    if (!shifted) {
      ASSERT_TRUE(s.read(isotope::tensor_kind::state, 0, cache).ok());
      for (int h = 0, D = size.width / size.heads; h < size.heads; ++h)  // position 5 has what position 4 has
        for (int d = 0; d < D; ++d) cache[std::size_t((h * size.context + 5) * D + d)] = cache[std::size_t((h * size.context + 4) * D + d)];
      ASSERT_TRUE(s.write(isotope::tensor_kind::state, 0, cache).ok());
    }
    (*s.template input<std::int32_t>("tokens"))[0] = tokens[8];
    (*s.template input<std::int32_t>("sequence"))[0] = 0;
    (*s.template input<std::int32_t>("position"))[0] = shifted ? 9 : 8;
    ASSERT_TRUE(s.run_plan(0).ok());
    std::vector<float> y;
    const auto logits = s.template output<typename TypeParam::precision::storage>("output");
    for (const auto x : *logits) y.push_back(float(x));
    EXPECT_GT(distance(y, want, 8), 2 * tolerance<TypeParam>) << (shifted ? "shifted" : "stale");
  }
}
/// Five texts beyond the context, in as many slots as given.
template <class T> std::vector<std::vector<std::int32_t>> texts(int slots) {
  const auto tokens = text(12);
  auto g = opened_generator<T>(slots, {5, 16});
  std::vector<isotope::generation_request> requests;
  for (std::size_t k = 0; k < 5; ++k)
    requests.push_back(
        {std::span(tokens).first(2 * k + 1), k == 2 ? 0 : std::int64_t(40 - 7 * k), {.temperature = k == 1 ? 0 : 1.0, .seed = k}});
  std::vector<std::vector<std::int32_t>> r(5);
  const auto take = [&](std::size_t k, std::int32_t token) { return r[k].push_back(token), k != 4 || r[k].size() < 3; };
  EXPECT_TRUE(g.generate(requests, take).ok());
  return r;
}
TYPED_TEST(generators, continue_a_text_alike_in_any_number_of_slots) {
  const auto one = texts<TypeParam>(1);
  const std::size_t sizes[] = {40, 33, 0, 19, 3};  // the last one is ended by what takes the tokens
  for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(one[k].size(), sizes[k]);
  for (const int slots : {2, 5}) EXPECT_EQ(texts<TypeParam>(slots), one) << slots;
}
TYPED_TEST(generators, submit_once_and_allocate_nothing_per_token) {
  const auto tokens = text(size.context);
  auto g = opened_generator<TypeParam>(2, {16}, true);
  ASSERT_TRUE(g.begin(0, std::span(tokens).first(3)).ok() && g.begin(1, std::span(tokens).first(7)).ok());
  const std::array<std::int32_t, 2> next{tokens[0], tokens[1]};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(g.append(next).ok());
  const auto submits = g.loaded().counters().submits;
  const auto before = allocations.load();
  bool good = true;
  for (int i = 0; i < 10; ++i) good = good && g.append(next).ok();
  const auto after = allocations.load();
  EXPECT_TRUE(good);
  EXPECT_EQ(g.loaded().counters().submits - submits, 10);
#if COUNTS_ALLOCATIONS
  EXPECT_EQ(after - before, 0);
#endif
}
template <class T> isotope::batcher<T> opened_batcher(int slots, int tokens_per_submit, std::vector<int> buckets, bool bare = false) {
  auto device = bare ? opened_bare<T>(1) : opened<T>(1);
  if (!device) throw std::runtime_error(device.error().line());
  auto b = isotope::batcher<T>::open(*device, size,
                                     {.slots = slots, .tokens_per_submit = tokens_per_submit, .prefill_tokens = std::move(buckets)});
  if (!b) throw std::runtime_error(b.error().line());
  b->initialize(3);
  return *std::move(b);
}
/// How the texts are drawn. The fourth is ended by what takes the tokens, the last one by an end token.
inline std::vector<isotope::batch_request> requests_of(std::span<const std::int32_t> tokens, std::span<const std::int32_t> ends) {
  return {{tokens.first(1), 40, {.seed = 5}},
          {tokens.first(7), 33, {.temperature = 0, .repetition_penalty = 1.3f}},
          {tokens.first(3), 0, {}},
          {tokens.first(12), 9, {.temperature = 0.8f, .top_k = 9, .top_p = 0.9f, .seed = 6}},
          {tokens.first(9), 20, {.min_p = 0.1f, .seed = 7}, ends}};
}
template <class T>
std::vector<std::vector<std::int32_t>> drawn_texts(int slots, int tokens_per_submit, std::vector<int> buckets,
                                                   std::span<const std::int32_t> ends = {}) {
  const auto tokens = text(12);
  auto b = opened_batcher<T>(slots, tokens_per_submit, std::move(buckets));
  std::vector<std::vector<std::int32_t>> r(5);
  const auto take = [&](std::size_t k, std::int32_t token) { return r[k].push_back(token), k != 3 || r[k].size() < 3; };
  EXPECT_TRUE(b.generate(requests_of(tokens, ends), take).ok());
  return r;
}
/// The same texts, drawn on the host from the logits of a generator, one after another.
template <class T> std::vector<std::vector<std::int32_t>> host_texts(std::span<const std::int32_t> ends) {
  const auto tokens = text(12);
  auto g = opened_generator<T>(1, {16});
  std::vector<std::vector<std::int32_t>> r;
  for (const isotope::batch_request& request : requests_of(tokens, ends)) {
    std::vector<std::int32_t>& drawn = r.emplace_back();
    isotope::token_history seen(std::size_t(size.context));
    seen.assign(request.prompt);
    for (auto at = std::uint32_t(request.prompt.size()); std::int64_t(drawn.size()) < request.tokens && (r.size() != 4 || drawn.size() < 3);
         ++at) {
      EXPECT_TRUE(drawn.empty() ? g.begin(0, request.prompt).ok() : g.append(std::span(drawn).last(1)).ok());
      drawn.push_back(isotope::drawn_token(g.logits(0), seen.tokens(), request.draw, at));
      seen.append(drawn.back());
      if (std::find(request.ends.begin(), request.ends.end(), drawn.back()) != request.ends.end()) break;
    }
  }
  return r;
}
TYPED_TEST(generators, draw_on_the_device_what_the_host_draws_for_any_slots_and_tokens_of_a_submission) {
  const std::vector<std::int32_t> none, ends{host_texts<TypeParam>(none)[4][6]};
  const auto want = host_texts<TypeParam>(ends);
  EXPECT_EQ(want[0].size(), 40u) << "beyond the context";
  EXPECT_LE(want[4].size(), 7u);
  for (const auto& [slots, together] : {std::pair(1, 1), std::pair(2, 8), std::pair(5, 3)})
    EXPECT_EQ(drawn_texts<TypeParam>(slots, together, {5, 16}, ends), want) << slots << " slots, " << together << " tokens";
}
/// Texts that are admitted at any time, and some of which are cancelled: each has the tokens that it has alone.
TYPED_TEST(generators, admit_and_cancel_texts_at_any_time_without_changing_others) {
  const auto tokens = text(12);
  const auto all = requests_of(tokens, {});
  auto one = opened_batcher<TypeParam>(1, 4, {5, 16});
  std::vector<std::vector<std::int32_t>> alone(all.size());
  for (std::size_t k = 0; k < all.size(); ++k)
    ASSERT_TRUE(one.generate(std::span(all).subspan(k, 1), [&](std::size_t, std::int32_t t) { return alone[k].push_back(t), true; }).ok());

  auto b = opened_batcher<TypeParam>(2, 4, {5, 16});
  EXPECT_FALSE(b.busy());
  struct text_there {
    std::size_t request = 0;
    int slot = -1;
    std::vector<std::int32_t> drawn;
  };
  std::vector<text_there> texts;
  std::uint32_t draw = 0;
  const auto chance = [&](std::uint32_t n) { return isotope::philox(11, ++draw, 0, 0)[0] % n == 0; };
  std::size_t cancelled = 0, whole = 0;
  for (int step = 0; step < 150 || b.busy(); ++step) {
    while (step < 150 && b.idle_slot() >= 0 && chance(2)) {
      const std::size_t request = std::array<std::size_t, 4>{0, 1, 3, 4}[texts.size() % 4];
      const auto slot = b.admit(all[request], texts.size());
      ASSERT_TRUE(slot.ok());
      texts.push_back({request, *slot, {}});
    }
    if (b.idle_slot() < 0) { EXPECT_FALSE(b.admit(all[0], 0).ok()) << "no slot is idle"; }
    ASSERT_TRUE(b.advance([&](std::size_t k, std::int32_t t) {
                   texts[k].drawn.push_back(t);
                   if (texts[k].drawn.size() == alone[texts[k].request].size()) texts[k].slot = -1, ++whole;
                   return true;
                 }).ok());
    if (chance(20))
      for (text_there& t : texts)
        if (t.slot >= 0) {
          b.cancel(t.slot);
          t.slot = -1;
          ++cancelled;
          break;
        }
  }
  EXPECT_GT(cancelled, 2u);
  EXPECT_GT(whole, 8u);
  for (const text_there& t : texts) {
    const auto& want = alone[t.request];
    ASSERT_LE(t.drawn.size(), want.size());
    EXPECT_TRUE(std::equal(t.drawn.begin(), t.drawn.end(), want.begin())) << "request " << t.request;
  }
}
/// A text that is saved while its prompt is read or its tokens are drawn, and goes on in another slot of the same batcher, or in another batcher.
TYPED_TEST(generators, go_on_with_the_same_bits_from_a_snapshot_in_any_slot) {
  const auto tokens = text(12);
  const isotope::batch_request request{tokens, 30, {.temperature = 0.9f, .top_p = 0.95f, .repetition_penalty = 1.1f, .seed = 9}},
      other{std::span(tokens).first(3), 60, {.seed = 4}};
  auto a = opened_batcher<TypeParam>(2, 1, {5}), b = opened_batcher<TypeParam>(3, 4, {5, 16});
  std::vector<std::int32_t> drawn;
  const auto take = [&](std::size_t number, std::int32_t token) { return number == 0 ? drawn.push_back(token), true : true; };
  const auto go_on = [&](auto& on, std::size_t until) {
    while (drawn.size() < until) ASSERT_TRUE(on.advance(take).ok());
  };
  ASSERT_TRUE(a.admit(request, 0).ok());
  go_on(a, 10);
  const auto want_at_10 = *a.save(0);
  go_on(a, 30);  // beyond the context of 24
  const auto want = drawn;
  for (const bool elsewhere : {false, true})
    for (const std::size_t at : {0u, 5u, 14u}) {
      drawn.clear();
      ASSERT_TRUE(a.generate({}, take).ok());
      ASSERT_EQ(*a.admit(request, 0), 0);
      ASSERT_TRUE(a.advance(take).ok());  // 5 of 12 tokens of the prompt
      go_on(a, at);
      const auto saved = *a.save(0);
      EXPECT_EQ(saved.draws, at > 0);
      a.cancel(0);
      auto& on = elsewhere ? b : a;
      ASSERT_TRUE(on.admit(other, 1).ok());
      ASSERT_TRUE(on.advance(take).ok());
      const auto slot = on.restore(saved, 0);
      ASSERT_TRUE(slot.ok()) << slot.error().line();
      EXPECT_EQ(*slot, 1);
      EXPECT_EQ(on.save(1)->cache, saved.cache);
      go_on(on, 10);
      if (at < 10 && !elsewhere && isotope::batcher<TypeParam>::session::host_memory) {
        EXPECT_EQ(a.save(1)->cache, want_at_10.cache) << at;
      }
      go_on(on, 30);
      EXPECT_EQ(drawn, want) << (elsewhere ? "elsewhere, from " : "from ") << at;
      ASSERT_TRUE(b.generate({}, take).ok());
    }
}
/// A prompt that begins as a saved text is read from where they differ.
TYPED_TEST(generators, read_only_what_a_prompt_does_not_have_in_common_with_its_prefix) {
  const auto tokens = text(20);
  std::vector<std::int32_t> prompt(tokens.begin(), tokens.begin() + 12), drawn;
  const auto take = [&](std::size_t, std::int32_t token) { return drawn.push_back(token), true; };
  auto b = opened_batcher<TypeParam>(1, 4, {5});
  isotope::batch_request request{prompt, 8, {.seed = 2}};
  ASSERT_TRUE(b.generate({&request, 1}, take).ok());
  const auto saved = *b.save(0);  // after its end
  EXPECT_EQ(saved.read, 19u);
  EXPECT_NE(b.restore(saved, 0).error().line().find("the request of the snapshot: had ended"), std::string::npos);
  for (const std::size_t common : {12u, 9u, 0u}) {
    prompt.assign(tokens.begin(), tokens.begin() + 12);
    if (common < 12) prompt[common] = (prompt[common] + 1) % size.vocab;
    std::int64_t submits[2];
    std::vector<std::int32_t> texts[2];
    for (const bool known : {false, true}) {
      request.prefix = known ? &saved : nullptr;
      drawn.clear();
      const auto before = b.loaded().counters().submits;
      ASSERT_TRUE(b.generate({&request, 1}, take).ok());
      submits[known] = b.loaded().counters().submits - before;
      texts[known] = drawn;
    }
    EXPECT_EQ(texts[0], texts[1]) << common;
    EXPECT_EQ(submits[0] - submits[1], common == 0 ? 0 : 2) << "of 3 runs of 5 tokens one is left, of " << common << " common tokens";
  }
}
TYPED_TEST(generators, draw_other_tokens_after_a_stale_cache_or_a_shifted_position) {
  const auto tokens = text(12);
  const isotope::batch_request request{tokens, 12, {.temperature = 0.02f, .seed = 8}};  // logits of this model are within 0.2
  std::vector<std::vector<std::int32_t>> texts;
  for (const int change : {0, 1, 2}) {
    auto b = opened_batcher<TypeParam>(1, 1, {16});
    auto& s = b.loaded();
    auto& drawn = texts.emplace_back();
    const auto take = [&](std::size_t, std::int32_t token) {
      drawn.push_back(token);
      for (std::size_t k = 0; drawn.size() == 4 && k < s.states().size(); ++k) {
        const bool position = s.states()[k].label == isotope::name("drawn.position"),
                   drawing = s.states()[k].where.type == isotope::dtype::i32;
        if (change == 0 || (change == 1 ? !position : drawing)) continue;
        std::vector<float> x(std::size_t(s.states()[k].where.dims.count()));
        EXPECT_TRUE(s.read(isotope::tensor_kind::state, k, x).ok());
        if (change == 1) x[0] += 1;
        else std::transform(x.begin(), x.end(), x.begin(), [](float v) { return -8 * v; });  // keys and values of other tokens
        EXPECT_TRUE(s.write(isotope::tensor_kind::state, k, x).ok());
      }
      return true;
    };
    ASSERT_TRUE(b.generate({&request, 1}, take).ok());
  }
  for (const std::size_t change : {1u, 2u}) {
    EXPECT_TRUE(std::equal(texts[0].begin(), texts[0].begin() + 4, texts[change].begin()));
    EXPECT_NE(texts[change], texts[0]) << (change == 1 ? "shifted" : "stale");
  }
}
TYPED_TEST(generators, draw_several_tokens_of_all_slots_in_one_submission_without_allocating) {
  const auto tokens = text(3);
  auto b = opened_batcher<TypeParam>(2, 4, {16}, true);
  const isotope::batch_request requests[] = {{tokens, 21, {.seed = 1}}, {std::span(tokens).first(2), 21, {.top_k = 5, .seed = 2}}};
  std::int64_t submits = 0, allocated = 0, count = 0;
  const auto take = [&](std::size_t, std::int32_t) {
    if (++count == 10) submits = b.loaded().counters().submits, allocated = allocations.load();  // each has 1 + 4
    if (count == 42) submits = b.loaded().counters().submits - submits, allocated = allocations.load() - allocated;
    return true;
  };
  ASSERT_TRUE(b.generate(requests, take).ok());
  EXPECT_EQ(count, 42);
  EXPECT_EQ(submits, 4) << "for 16 tokens of each";
#if COUNTS_ALLOCATIONS
  EXPECT_EQ(allocated, 0);
#endif
}
TEST(batcher, refuses_what_it_cannot_do_and_says_why) {
  using made = isotope::batcher<reference_f32>;
  auto device = opened<reference_f32>(1);
  EXPECT_NE(made::open(*device, size, {.slots = 0}).error().line().find("batcher_options::slots: is not positive"), std::string::npos);
  EXPECT_NE(made::open(*device, size, {.tokens_per_submit = 0}).error().line().find("tokens_per_submit: is not"), std::string::npos);
  EXPECT_NE(made::open(*device, size, {.prefill_tokens = {0}}).error().line().find("prefill_tokens: is not positive"), std::string::npos);
  auto b = opened_batcher<reference_f32>(1, 1, {});
  const isotope::batch_request empty{{}, 1};
  EXPECT_FALSE(b.generate({&empty, 1}, [](std::size_t, std::int32_t) { return true; }).ok());
  EXPECT_NE(b.admit(empty, 0).error().line().find("the prompt: has no tokens"), std::string::npos);
  const auto tokens = text(2);
  EXPECT_NE(b.admit({tokens, 0}, 0).error().line().find("asks for 0 tokens"), std::string::npos);
  EXPECT_NE(b.save(0).error().line().find("slot 0: has no sequence"), std::string::npos);
  ASSERT_TRUE(b.admit({tokens, 1}, 0).ok());
  auto saved = *b.save(0);
  EXPECT_NE(b.restore(saved, 0).error().line().find("all 1 slots: have requests"), std::string::npos);
  b.cancel(0);
  saved.format[0] += 1;
  EXPECT_EQ(b.restore(saved, 0).error().code, isotope::errc::model_mismatch);
  const isotope::batch_request after{tokens, 1, {}, {}, &saved};
  EXPECT_EQ(b.admit(after, 0).error().code, isotope::errc::model_mismatch);
  EXPECT_EQ(b.idle_slot(), 0);
}
TEST(generator, refuses_what_it_cannot_do_and_says_why) {
  using made = isotope::generator<reference_f32>;
  auto device = opened<reference_f32>(1);
  EXPECT_NE(made::open(*device, size, {.slots = 0}).error().line().find("generator_options::slots: is not positive"), std::string::npos);
  EXPECT_NE(made::open(*device, size, {.prefill_tokens = {0}}).error().line().find("prefill_tokens: is not positive"), std::string::npos);
  auto g = opened_generator<reference_f32>(2, {});
  const auto tokens = text(3);
  EXPECT_FALSE(g.begin(2, tokens).ok());
  EXPECT_FALSE(g.begin(0, {}).ok());
  EXPECT_FALSE(g.append(std::span(tokens).first(1)).ok());
  EXPECT_FALSE(g.append(std::span(tokens).first(2)).ok()) << "no slot has begun";
}
TEST(sampler, draws_as_the_function_does) {
  isotope::train::sampler draw;
  std::vector<float> logits;
  for (int i = 0; i < 50; ++i) logits.push_back(float(isotope::philox(1, std::uint64_t(i), 0, 0)[0] % 100) / 20);
  for (std::uint64_t k = 0; k < 20; ++k) {
    const isotope::train::sample_options o{.temperature = 0.7, .top_k = k % 3 == 0 ? 5 : 0, .top_p = k % 2 == 0 ? 0.8 : 1, .seed = k};
    EXPECT_EQ(draw(logits, o, k), isotope::train::sample(logits, o, k));
  }
}

}  // namespace generator_test
