// A sentence has the same embedding, bit for bit, alone and in any batch, at any place of it, in plans for any number of tokens, for any number of threads, and
// with weights that are packed or not.
#include "outcome.hpp"

#include <isotope/model/bert.hpp>
#include <isotope/plan/dynamic.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

namespace iso = isotope;
using namespace plan_test;

namespace batch_invariant_test {

// Products have sums of one and of two blocks of K, and of fewer and of more terms than rows.
constexpr iso::model::bert size{2, 4, 64, 400, 50, 40};
using sentence = std::vector<std::int32_t>;
const std::vector<sentence> sentences = [] {
  std::vector<sentence> all;
  for (const int length : {5, 1, 40, 3, 17}) {
    sentence s;
    for (int i = 0; i < length; ++i) s.push_back((7 * i + 11 * length) % size.vocab);
    all.push_back(s);
  }
  return all;
}();

template <class T> T must(iso::result<T> r) {
  if (!r) throw std::runtime_error(r.error().line());
  return *std::move(r);
}
template <class Target> iso::dynamic_plan planned(int tokens, int most, bool pack) {
  return must(iso::plan_inference<Target>(iso::model::bert_embeddings_of{size, tokens, most}, 0, true, false, nullptr, nullptr, true, false,
                                          {}, pack));
}
bool has_copies(const iso::dynamic_plan& p) { return p.totals.region[std::size_t(iso::value_kind::packed)] > 0; }
/// Whether the target's kernels want packed copies of weights: those of the processor's native f32 do; those of bf16 where it multiplies tiles, or pairs fast.
template <class Target> bool packs() {
  constexpr bool native = Target::backend::name == iso::backend::cpu::name && Target::kernel_set::name == iso::kernels::native::name;
  static const bool answer = has_copies(planned<Target>(8, 2, true));
  if (!native || Target::precision::type == iso::dtype::f32) { EXPECT_EQ(answer, native); }
  return answer;
}
/// @param pack  whether products read packed copies of weights, where the target's kernels want them
template <class Target> std::vector<float> embedded(const std::vector<int>& which, int tokens, int idle_before, int threads, bool pack) {
  const int most = int(which.size()) + 2;
  auto device = must(opened<Target>(threads));
  auto plan = planned<Target>(tokens, most, pack);
  EXPECT_EQ(has_copies(plan), pack && packs<Target>());
  auto session = must(device.load(std::move(plan)));
  session.initialize(7);
  std::vector<std::int32_t> ids(std::size_t(tokens), 0), position(std::size_t(tokens), 0), starts;
  auto at = std::size_t(idle_before);
  for (const int k : which) {
    starts.push_back(std::int32_t(at));
    for (std::size_t i = 0; i < sentences[std::size_t(k)].size(); ++i, ++at) {
      ids.at(at) = sentences[std::size_t(k)][i];
      position.at(at) = std::int32_t(i);
    }
  }
  while (starts.size() < std::size_t(most) + 1) starts.push_back(std::int32_t(at));
  EXPECT_TRUE(session.template set<std::int32_t>("tokens", ids).ok() && session.template set<std::int32_t>("position", position).ok() &&
              session.template set<std::int32_t>("starts", starts).ok());
  session.run({}, iso::phase_always);
  std::vector<float> all(std::size_t(most * size.width));
  if constexpr (Target::precision::type == iso::dtype::bf16) {
    const auto y = must(session.template output<iso::bfloat16>("output"));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = float(y[i]);
  } else {
    const auto y = must(session.template output<float>("output"));
    all.assign(y.begin(), y.end());
  }
  return all;
}
template <class T> struct batch_invariant : testing::Test {};
TYPED_TEST_SUITE(batch_invariant, every_target, target_name);

TYPED_TEST(batch_invariant, embeddings_have_the_same_bits_in_every_batch) {
  std::vector<std::vector<float>> alone;
  for (int k = 0; k < int(sentences.size()); ++k) {
    alone.push_back(embedded<TypeParam>({k}, int(sentences[std::size_t(k)].size()), 0, 1, false));
    alone.back().resize(size.width);
    double squares = 0;
    for (const float x : alone.back()) squares += double(x) * double(x);
    EXPECT_NEAR(squares, 1, 0.02);
  }
  struct batch {
    std::vector<int> which;
    int tokens, idle_before, threads;
  };
  const bool host = TypeParam::backend::name == iso::backend::cpu::name;
  for (const batch& b : {batch{{3}, 4, 1, 2}, batch{{0, 3, 1}, 16, 2, 2}, batch{{4, 2, 1}, 64, 0, 1},
                         batch{{2, 0, 4, 1, 3, 2, 3}, 150, 5, 2}, batch{{1, 1, 3, 4, 2, 0}, host ? 600 : 130, 0, 3}}) {
    for (const bool pack : {false, true}) {
      if (pack && !packs<TypeParam>()) continue;
      const auto y = embedded<TypeParam>(b.which, b.tokens, b.idle_before, b.threads, pack);
      for (std::size_t i = 0; i < b.which.size(); ++i)
        EXPECT_EQ(std::memcmp(y.data() + i * size.width, alone[std::size_t(b.which[i])].data(), sizeof(float) * size.width), 0)
            << "sentence " << b.which[i] << " at place " << i << " of " << b.tokens << " tokens, packed " << pack;
    }
  }
}

TYPED_TEST(batch_invariant, plans_with_packed_weights_come_first) {
  auto device = must(opened<TypeParam>(1));
  for (const bool first : {false, true}) {
    std::vector<iso::owned_plan> both;
    both.push_back({"first", planned<TypeParam>(8, 2, first)});
    both.push_back({"second", planned<TypeParam>(8, 2, !first)});
    const auto loaded = device.load(std::move(both));
    EXPECT_EQ(loaded.ok(), first || !packs<TypeParam>()) << first;
    if (!loaded.ok()) { EXPECT_EQ(loaded.error().code, iso::errc::model_mismatch); }
  }
}

}  // namespace batch_invariant_test
