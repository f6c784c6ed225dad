// labels: alone
/// Sentences become vectors that depend on nothing but the sentence: not on its neighbours, its place or the size of the run.
#include "../allocation_counter.hpp"
#include "../io/scratch_folder.hpp"
#include "outcome.hpp"

#include <isotope/generate/embedder.hpp>

#include <fixtures_folder.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace plan_test;

namespace embedder_test {

/// The BERT of tests/fixtures, which has 96 tokens and a limit of 16, with a vocabulary of letters.
struct model_folder {
  isotope::scratch_folder files;
  model_folder() {
    std::filesystem::copy(std::string(fixtures_folder) + "bert", files.at("bert"), std::filesystem::copy_options::recursive);
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char c = 'a'; c <= 'z'; ++c) words += std::string(1, c) + "\n##" + c + "\n";
    files.put("bert/vocab.txt", words);
  }
  std::string path() const { return files.at("bert"); }
};

template <class T> isotope::embedder<T> opened_embedder(const isotope::embedder_options& o, bool bare = false) {
  const model_folder folder;
  auto device = bare ? opened_bare<T>(1) : opened<T>(1);
  if (!device) throw std::runtime_error(device.error().line());
  auto e = isotope::embedder<T>::open(*device, folder.path(), o);
  if (!e) throw std::runtime_error(e.error().line());
  return *std::move(e);
}
inline std::vector<std::string> texts() {
  return {"a cat", "", "so many letters", "b", "a", "dogs and cats", "a cat", "zyxwvutsrqponmlkj", "\xff", "[SEP] x"};
}
template <class T> std::vector<float> vectors(isotope::embedder<T>& e, const std::vector<std::string>& all) {
  const auto made = e.embed(all);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().line());
  return made.ok() ? made->values : std::vector<float>();
}

template <class T> struct embedders : testing::Test {};
TYPED_TEST_SUITE(embedders, every_target, target_name);

TYPED_TEST(embedders, give_a_text_the_same_bits_in_any_batch_and_order) {
  auto e = opened_embedder<TypeParam>({.tokens = 48, .buckets = {}});
  const auto all = texts();
  const auto want = vectors(e, all);
  const auto row = [&](const std::vector<float>& of, std::size_t k) {
    return std::vector<float>(of.begin() + std::ptrdiff_t(k * e.width()), of.begin() + std::ptrdiff_t((k + 1) * e.width()));
  };
  std::vector<std::string> many;
  for (std::size_t k = 0; k < 37; ++k) many.push_back(all[7 * k % all.size()]);
  const auto got = vectors(e, many);
  for (std::size_t k = 0; k < many.size(); ++k) EXPECT_TRUE(same_bits(row(got, k), row(want, 7 * k % all.size()))) << many[k];
  for (std::size_t k = 0; k < all.size(); ++k) {
    EXPECT_TRUE(same_bits(vectors(e, {all[k]}), row(want, k))) << all[k];
    double square = 0;
    for (const float x : row(want, k)) square += double(x) * double(x);
    EXPECT_LE(std::abs(square - 1), sizeof(typename TypeParam::precision::storage) == 4 ? 1e-5 : 0.02) << all[k];
  }
  EXPECT_TRUE(same_bits(row(want, 0), row(want, 6)));
  EXPECT_FALSE(same_bits(row(want, 0), row(want, 4)));
}
TYPED_TEST(embedders, give_nearly_the_same_vectors_in_any_order_of_sums) {
  auto one = opened_embedder<TypeParam>({.tokens = 48, .buckets = {}}),
       other = opened_embedder<TypeParam>({.tokens = 48, .buckets = {}, .batch_invariant = false});
  const auto invariant = [](const auto& e) {
    int products = 0, so = 0;
    for (const isotope::step& s : e.loaded().plan().steps)
      if (s.op->name == isotope::op::matmul::name) ++products, so += isotope::op::matmul::constants::of(s.attr).batch_invariant ? 1 : 0;
    EXPECT_GT(products, 0);
    return so == products ? 1 : so == 0 ? 0 : -1;
  };
  EXPECT_EQ(invariant(one), 1);
  EXPECT_EQ(invariant(other), 0);
  const auto a = vectors(one, texts()), b = vectors(other, texts());
  for (std::size_t k = 0; k < texts().size(); ++k) {
    const auto row = [&](const std::vector<float>& of) { return std::span(of).subspan(k * one.width(), one.width()); };
    EXPECT_GE(isotope::similarity(row(a), row(b)), sizeof(typename TypeParam::precision::storage) == 4 ? 0.99999 : 0.98) << texts()[k];
  }
}
TYPED_TEST(embedders, allocate_nothing_for_ids_in_the_steady_state) {
  auto e = opened_embedder<TypeParam>({.tokens = 32, .buckets = {16}}, true);
  const std::vector<std::int32_t> ids{2, 7, 8, 3, 2, 3, 2, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 3};
  const std::vector<std::size_t> starts{0, 4, 6, 6, 20};
  std::vector<float> rows(4 * e.width(), 7);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(e.embed_ids(ids, starts, rows).ok());
  const auto before = allocations.load();
  ASSERT_TRUE(e.embed_ids(ids, starts, rows).ok());
  if (COUNTS_ALLOCATIONS) { EXPECT_EQ(allocations.load() - before, 0); }
  for (std::size_t c = 0; c < e.width(); ++c) EXPECT_EQ(rows[2 * e.width() + c], 0) << "a text without tokens";
}

using host = on_cpu<isotope::precision::f32, isotope::kernels::native>;

TEST(embedder, gives_runs_of_any_size_the_same_bits_on_the_host) {
  const auto all = texts();
  auto one = opened_embedder<host>({.tokens = 4096, .buckets = {}});
  const auto want = vectors(one, all);
  for (const int n : {16, 17, 32, 64, 100, 256, 1024}) {
    auto e = opened_embedder<host>({.tokens = n, .buckets = {}});
    EXPECT_TRUE(same_bits(vectors(e, all), want)) << n;
  }
  for (const bool finer : {false, true}) {
    auto several = opened_embedder<host>({.tokens = 64, .buckets = {16, 32, 16, 4096}, .finer = finer});
    EXPECT_EQ(several.packing().buckets().size(), finer ? 8u : 3u);
    EXPECT_TRUE(same_bits(vectors(several, all), want));
  }
}
TEST(embedder, counts_the_tokens_that_it_takes_and_cuts) {
  auto e = opened_embedder<host>({});
  EXPECT_EQ(e.limit(), 16u);
  const auto made = e.embed(std::vector<std::string>{"", "a b", "a b c d e f g h i j k l m n", "a b c d e f g h i j k l m n o p q"});
  ASSERT_TRUE(made.ok());
  const int used[] = {2, 4, 16, 16}, cut[] = {0, 0, 0, 3};
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(made->texts[k].used, used[k]);
    EXPECT_EQ(made->texts[k].cut, cut[k]);
  }
  EXPECT_NEAR(isotope::similarity(made->row(2), made->row(3)), 1, 1e-5);
  EXPECT_EQ(e.embed(std::vector<std::string>{})->size(), 0u);
  auto strict = opened_embedder<host>({.longer = isotope::long_texts::refuse});
  const auto refused = strict.embed(std::vector<std::string>{"a", "a b c d e f g h i j k l m n o"}, 7);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().line(), "text 9: the text has 17 ids, and the limit is 16 (fix: shorten it, or let long texts be truncated)");
}
TEST(embedder, refuses_what_it_cannot_do_and_says_why) {
  const model_folder folder;
  const auto device = *isotope::device<host>::open({.threads = 1});
  using made = isotope::embedder<host>;
  const auto says = [](const auto& r, std::string_view words) {
    EXPECT_FALSE(r.ok()) << words;
    if (!r.ok()) { EXPECT_NE(r.error().line().find(words), std::string::npos) << r.error().line(); }
  };
  says(made::open(device, folder.files.at("nowhere")), "no such folder");
  says(made::open(device, folder.path(), {.tokens = 15}), "embedder_options::tokens: is 15, and texts have up to 16 tokens");
  says(made::open(device, folder.path(), {.buckets = {0}}), "embedder_options::buckets: is not positive");
  says(made::open(device, folder.path(), {.stored = isotope::weights::q4_0}), "embedder_options::stored: is q4_0");
  auto e = *made::open(device, folder.path());
  std::vector<float> rows(2 * e.width());
  const std::vector<std::int32_t> ids{2, 5, 3}, other{2, 96, 3}, many(34, 5);
  using starts = std::vector<std::size_t>;
  EXPECT_TRUE(e.embed_ids(ids, starts{0, 0, 3}, rows).ok());
  says(e.embed_ids(ids, starts{}, rows), "starts: do not divide the ids");
  says(e.embed_ids(ids, starts{0, 2, 1, 3}, rows), "starts: do not divide the ids");
  says(e.embed_ids(ids, starts{0, 2}, rows), "starts: do not divide the ids");
  says(e.embed_ids(ids, starts{0, 3}, rows), "has room for 48 numbers, not for 1 vectors of 24");
  says(e.embed_ids(other, starts{0, 0, 3}, rows), "ids: has 96, and the model has 96 tokens");
  says(e.embed_ids(many, starts{0, 17, 34}, rows), "text 1 has 17 ids, and the limit is 16");
  folder.files.put("bert/vocab.txt", [] {
    std::string words;
    for (int i = 0; i < 97; ++i) words += "w" + std::to_string(i) + "\n";
    return words + "[UNK]\n";
  }());
  says(made::open(device, folder.path()), "has ids up to 97, and the model has 96 tokens");
  std::filesystem::remove(folder.files.at("bert/vocab.txt"));
  says(made::open(device, folder.path()), "the folder has no tokenizer");
}

namespace iso {
using namespace isotope;
using selected = host;
}  // namespace iso
/// The example of README.md and docs/EMBEDDINGS.md, which a test of the repository compares with this text.
[[maybe_unused]] int example() {
  // README begins
  auto embed = iso::embedder<iso::selected>::open("build/minilm");
  if (!embed) return std::puts(embed.error().line().c_str()), 1;
  const std::vector<std::string> texts{"A cat sleeps on the sofa.", "The kitten is napping on the couch."};
  const auto vectors = embed->embed(texts);
  if (!vectors) return std::puts(vectors.error().line().c_str()), 1;
  std::printf("%.2f\n", iso::similarity(vectors->row(0), vectors->row(1)));
  // README ends
  return 0;
}

}  // namespace embedder_test
