#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <isotope/io/byte_pair_train.hpp>
#include <isotope/io/shard_dataset.hpp>
#include <isotope/io/text_shards.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "io/scratch_folder.hpp"

namespace isotope {
namespace shards_test {

using namespace io;
using ids = std::vector<std::int32_t>;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  if (at != text.npos) text.replace(at, from.size(), to);
  return text;
}

/// Documents of the ids 1, 2, 3, ..., so that an id says where it stands; 0 ends a document.
shard_manifest write_counting(const std::string& folder, int documents, int length, const shard_options& o) {
  auto w = shard_writer::make(folder, o);
  EXPECT_TRUE(w.ok()) << w.error().line();
  std::int32_t next = 1;
  for (int d = 0; d < documents; ++d) {
    ids document;
    for (int i = 0; i < length; ++i) document.push_back(next++);
    EXPECT_TRUE(w->add(document).ok() && w->end_document().ok());
  }
  auto m = w->finish(7);
  EXPECT_TRUE(m.ok()) << (m ? "" : m.error().line());
  return m ? *m : shard_manifest{};
}

struct batch_ids {
  ids tokens, targets;
  friend bool operator==(const batch_ids&, const batch_ids&) = default;
};
batch_ids training(const shard_dataset& d, std::uint64_t seed, std::int64_t k, std::size_t rows, std::int64_t length) {
  batch_ids b{ids(rows * std::size_t(length)), ids(rows * std::size_t(length))};
  d.training_batch(seed, k, length, b.tokens, b.targets);
  return b;
}

TEST(shards, a_manifest_comes_back_from_its_text) {
  const shard_manifest m{70000, 69999, 0xfedcba9876543210u, ~std::uint64_t(0), {{12, 1, false}, {1, ~std::uint64_t(0), true}}};
  const auto back = parse_manifest(m.to_json(), "m");
  ASSERT_TRUE(back.ok()) << back.error().line();
  EXPECT_EQ(*back, m);
  EXPECT_EQ(back->bytes_per_token(), 4u);
  EXPECT_EQ(back->tokens(false), 12);
  EXPECT_EQ(back->count(true), 1u);
}

TEST(shards, a_damaged_manifest_is_refused_with_the_key) {
  const std::string good = shard_manifest{300, 299, 1, 1, {{12, 1, false}, {5, 2, true}}}.to_json();
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"isotope token shards", "shards"}, "is not the manifest of token shards"},
      {{"\"version\": 1", "\"version\": 2"}, "has version 2"},
      {{"\"vocabulary\": 300", "\"vocabulary\": 0"}, "vocabulary: is 0"},
      {{"\"vocabulary\": 300", "\"vocabulary\": 70000"}, "bytes_per_token: is 2"},
      {{"\"bytes_per_token\": 2", "\"bytes_per_token\": 3"}, "bytes_per_token: is 3"},
      {{"\"end_of_text\": 299", "\"end_of_text\": 300"}, "end_of_text: is 300"},
      {{"\"seed\": 1", "\"seed\": -1"}, "seed: is -1"},
      {{"\"seed\": 1", "\"seed\": \"1\""}, "seed: is \"1\""},
      {{"shard-00001.bin", "shard-00000.bin"}, "file: is not 'shard-00001.bin'"},
      {{"shard-00000.bin", "../shard.bin"}, "file: is not 'shard-00000.bin'"},
      {{"\"tokens\": 12", "\"tokens\": 0"}, "tokens: is 0"},
      {{"\"tokens\": 12", "\"tokens\": 1073741825"}, "tokens: is 1073741825"},
      {{"0000000000000001\", \"split", "1\", \"split"}, "hash: is not a hash"},
      {{"validation", "test"}, "split: is neither training nor validation"},
      {{"\"shards\": [", "\"shards\": 1, \"x\": ["}, "shards: is not a list"},
      {{"{\"file", "7, {\"file"}, "a shard is a number"},
  };
  for (const auto& [change, part] : cases) {
    const auto m = parse_manifest(replaced(good, change.first, change.second), "m.json");
    ASSERT_FALSE(m.ok()) << change.second;
    EXPECT_NE(m.error().line().find(part), std::string::npos) << m.error().line();
    EXPECT_TRUE(m.error().line().starts_with("m.json")) << m.error().line();
  }
  for (std::size_t n = 0; n < good.size() - 2; ++n) ASSERT_FALSE(parse_manifest(good.substr(0, n), "m").ok()) << n;
  EXPECT_FALSE(parse_manifest(std::string(2 << 20, ' ') + good, "m").ok());
}

TEST(shards, an_epoch_reads_every_window_once_and_stays_within_the_shuffle_window) {
  for (const std::uint64_t n : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 1000u, 4097u})
    for (const std::uint64_t block : {1u, 2u, 7u, 64u, 5000u}) {
      const window_order order(3, 1, n, block);
      std::vector<int> seen(n);
      for (std::uint64_t p = 0; p < n; ++p) {
        const std::uint64_t w = order(p);
        ASSERT_LT(w, n);
        ++seen[w];
        ASSERT_EQ(w / std::min(block, n), order(p / block * block) / std::min(block, n)) << "a position leaves its block";
      }
      ASSERT_TRUE(std::all_of(seen.begin(), seen.end(), [](int c) { return c == 1; })) << n << " " << block;
    }
  int moved = 0, kept = 0;
  for (std::uint64_t p = 0; p < 1000; ++p) {
    moved += window_order(3, 1, 1000, 1000)(p) != window_order(3, 2, 1000, 1000)(p);
    kept += window_order(3, 1, 1000, 1000)(p) == p;
  }
  EXPECT_GT(moved, 950);
  EXPECT_LT(kept, 20);  // about one, for a random permutation
}

TEST(shards, the_order_of_an_epoch_never_changes) {
  // A resumed run depends on these numbers.
  std::vector<int> seen;
  for (std::uint64_t p = 0; p < 10; ++p) seen.push_back(int(window_order(1, 5, 10, 4)(p)));
  EXPECT_EQ(seen, (std::vector<int>{2, 0, 1, 3, 6, 4, 5, 7, 8, 9}));  // also those of a second implementation of the formulas, in Python
}

TEST(shards, pieces_of_a_document_have_the_ids_of_the_whole) {
  std::mt19937 chance(5);
  const std::string_view parts[] = {"the ",   " thing",   "\n",     "\n\n", " ",  "  ",      ".\n",    "\r\n", "'s", "1234",
                                    "\u00e9", "\u4e2d\n", "\u3000", "\t",   "!?", "e\u0301", "\u0301", "\xff", "x",  "<|end|>"};
  for (const split_rule rule : {split_rule::gpt2, split_rule::llama3, split_rule::qwen2}) {
    std::string learned;
    for (int i = 0; i < 40; ++i) learned += "the thing.\n\n that they 's thought of 1234\r\n  then !?\n";
    const auto t =
        *tokenizer_from_json(tokenizer_json(*train_byte_pair(learned, {.size = 320, .least = 2, .rule = rule}), {"<|end|>"}), "t");
    int divided = 0;
    for (int i = 0; i < 400; ++i) {
      std::string text;
      for (std::size_t n = 1 + chance() % 80; n > 0; --n) text += parts[chance() % std::size(parts)];
      document_pieces documents("", true, 8);
      ids made;
      int pieces = 0, ends = 0;
      const auto take = [&](std::string_view piece, bool last) -> result<void> {
        const auto e = t.encode(piece, {.framed = false});
        made.insert(made.end(), e->ids.begin(), e->ids.end());
        ++pieces, ends += last;
        return {};
      };
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t n = std::min<std::size_t>(1 + chance() % 30, text.size() - at);
        ASSERT_TRUE(documents.add(std::string_view(text).substr(at, n), "t", take).ok());
        at += n;
      }
      ASSERT_TRUE(documents.end(take).ok());
      ASSERT_EQ(made, t.encode(text, {.framed = false})->ids) << json_string(text);
      ASSERT_EQ(ends, 1);
      divided += pieces > 1;
    }
    EXPECT_GT(divided, 100);
  }
}

TEST(shards, documents_are_those_between_separators_however_the_text_comes) {
  const auto split = [](std::string separator, std::string_view text, std::size_t step) {
    std::vector<std::string> all(1);
    document_pieces documents(std::move(separator), true, 4);
    const auto take = [&](std::string_view piece, bool last) -> result<void> {
      all.back() += piece;
      if (last) all.emplace_back();
      return {};
    };
    for (std::size_t at = 0; at < text.size(); at += step) EXPECT_TRUE(documents.add(text.substr(at, step), "t", take).ok());
    EXPECT_TRUE(documents.end(take).ok());
    EXPECT_EQ(all.back(), "");
    all.pop_back();
    return all;
  };
  using texts = std::vector<std::string>;
  for (std::size_t step = 1; step < 9; ++step) {
    EXPECT_EQ(split("\n", "\na b c d e f g h\r\n\n\r\nlast", step), (texts{"a b c d e f g h", "last"})) << step;
    EXPECT_EQ(split("\n\n", "one\ntwo\n\n\n\nthree and four\n", step), (texts{"one\ntwo", "three and four\n"})) << step;
    EXPECT_EQ(split("<|e|>", "a long document<|e|<|e|>b<|e|>", step), (texts{"a long document<|e|", "b"})) << step;
    EXPECT_EQ(split("", "\n\n", step), (texts{"\n\n"})) << step;
    EXPECT_EQ(split("", "", step), texts{}) << step;
  }
}

TEST(shards, a_document_that_cannot_be_divided_is_refused_before_memory_runs_out) {
  document_pieces documents("");
  const std::string line(8 << 20, 'x');
  const auto take = [](std::string_view, bool) { return result<void>(); };
  result<void> r;
  for (int i = 0; i < 9 && r; ++i) r = documents.add(line, "long.txt", take);
  ASSERT_FALSE(r.ok());
  EXPECT_TRUE(r.error().line().starts_with("long.txt: a document has 75497472 bytes without a place")) << r.error().line();
}

TEST(shards, shards_hold_the_text_in_order_and_small_documents_whole) {
  const scratch_folder folder;
  const shard_options o{.vocabulary = 5000, .end_of_text = 0, .shard_tokens = 22, .validation = 0.25, .seed = 3};
  const shard_manifest m = write_counting(folder.at("s"), 20, 10, o);  // 11 tokens each, at most half of a shard
  EXPECT_EQ(m.tokens(false) + m.tokens(true), 220);
  std::string text;
  for (std::size_t k = 0; k < m.shards.size(); ++k) {
    const std::string bytes = folder.read("s/" + shard_name(k));
    EXPECT_EQ(bytes.size(), 2 * std::size_t(m.shards[k].tokens));
    EXPECT_LE(m.shards[k].tokens, 22);
    EXPECT_EQ(bytes.substr(bytes.size() - 2), std::string(2, '\0')) << "a shard ends with a document";
    text += bytes;
  }
  ASSERT_EQ(text.size(), 440u);
  for (int d = 0, next = 1; d < 20; ++d)
    for (int i = 0; i < 11; ++i) {
      const auto at = std::size_t(2 * (11 * d + i));
      ASSERT_EQ(int(static_cast<unsigned char>(text[at])) + 256 * int(static_cast<unsigned char>(text[at + 1])), i == 10 ? 0 : next++);
    }
  EXPECT_EQ(m.count(true), 5u);
  EXPECT_EQ(folder.read("s/manifest.json"), m.to_json());
  EXPECT_EQ(folder.names("s").size(), m.shards.size() + 1) << "no temporary file is left";
  EXPECT_EQ(write_counting(folder.at("again"), 20, 10, o), m);
  auto other = o;
  other.seed = 4;
  EXPECT_NE(write_counting(folder.at("other"), 20, 10, other), m);
}

TEST(shards, a_long_document_is_divided_between_shards_of_the_full_size) {
  const scratch_folder folder;
  const auto m =
      write_counting(folder.at("s"), 1, 99, {.vocabulary = 70000, .end_of_text = 0, .shard_tokens = 40, .validation = 0, .seed = 1});
  ASSERT_EQ(m.shards.size(), 3u);
  EXPECT_EQ(m.shards[0].tokens, 40);
  EXPECT_EQ(m.shards[2].tokens, 20);
  EXPECT_EQ(folder.read("s/shard-00002.bin").size(), 80u) << "ids of a vocabulary of more than 65536 have 32 bits";
}

TEST(shards, nothing_is_overwritten_and_a_failed_run_leaves_nothing) {
  const scratch_folder folder;
  const shard_options o{.vocabulary = 100, .end_of_text = 0, .shard_tokens = 8, .validation = 0.1, .seed = 1};
  write_counting(folder.at("done"), 4, 10, o);
  EXPECT_NE(shard_writer::make(folder.at("done"), o).error().line().find("already holds token shards"), std::string::npos);
  std::filesystem::create_directory(folder.at("cut"));
  EXPECT_NE(shard_writer::make(folder.at("cut"), o).error().line().find("a run may have been cut off"), std::string::npos);
  EXPECT_EQ(shard_writer::make(folder.at("absent/s"), o).error().code, errc::write_failed);
  {
    auto w = shard_writer::make(folder.at("failed"), o);
    ASSERT_TRUE(w.ok());
    EXPECT_TRUE(w->add(ids(20, 1)).ok());
    EXPECT_TRUE(w->put_file("tokenizer.json", "{}").ok());
    EXPECT_EQ(w->add(ids{100}).error().code, errc::invalid_argument);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.at("failed")));
  {
    auto w = shard_writer::make(folder.at("small"), o);
    EXPECT_TRUE(w->add(ids{1, 2}).ok() && w->end_document().ok());
    const auto m = w->finish(0);
    ASSERT_FALSE(m.ok());
    EXPECT_NE(m.error().line().find("the 3 tokens fill 1 shards, 1 of them for validation"), std::string::npos) << m.error().line();
    EXPECT_FALSE(shard_writer::make(folder.at("empty"), o)->finish(0).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(folder.at("small")));
}

TEST(shards, batches_read_every_training_window_of_an_epoch_and_drop_a_part_of_one) {
  const scratch_folder folder;
  for (const std::int32_t vocabulary : {65536, 65537}) {
    const std::string path = folder.at(std::to_string(vocabulary));
    const auto m =
        write_counting(path, 1, 1999, {.vocabulary = vocabulary, .end_of_text = 0, .shard_tokens = 100, .validation = 0.2, .seed = 9});
    const auto d = shard_dataset::open(path, 16);
    ASSERT_TRUE(d.ok()) << d.error().line();
    EXPECT_TRUE(d->check(7, 3).ok());
    EXPECT_TRUE(d->verify().ok());
    const auto windows = std::int64_t(m.count(false)) * 14;  // 14 = floor(99 / 7)
    std::set<std::int32_t> trained, validated;
    std::vector<batch_ids> epochs[2];
    const std::int64_t batches = windows / 3;
    for (std::int64_t k = 0; k < 2 * batches; ++k) {
      const batch_ids b = training(*d, 1, k, 3, 7);
      epochs[k / batches].push_back(b);
      for (std::size_t i = 0; i < b.tokens.size(); ++i) {
        ASSERT_EQ(b.targets[i], b.tokens[i] + 1);
        if (i % 7 == 0 && k < batches) { ASSERT_TRUE(trained.insert(b.tokens[i]).second) << "a window was read twice in an epoch"; }
        ASSERT_FALSE(m.shards[std::size_t(b.targets[i] - 1) / 100].validation);
      }
    }
    EXPECT_EQ(trained.size(), std::size_t(batches * 3));
    EXPECT_NE(epochs[0], epochs[1]);
    // Validation windows are those of the other shards.
    ids tokens(5 * 7), targets(5 * 7);
    EXPECT_EQ(d->validation_windows(7), std::int64_t(m.count(true)) * 14);
    for (std::int64_t first = 0; first < d->validation_windows(7); first += 5) {
      const std::int64_t rows = d->validation_batch(first, 7, tokens, targets);
      for (std::size_t i = 0; i < 35; ++i)
        if (std::int64_t(i) < rows * 7) {
          ASSERT_TRUE(m.shards[std::size_t(targets[i] - 1) / 100].validation);
          validated.insert(tokens[i]);
        } else {
          ASSERT_EQ(targets[i], -1);
        }
    }
    EXPECT_EQ(std::int64_t(validated.size()), d->validation_windows(7) * 7);
    for (const std::int32_t t : trained) ASSERT_FALSE(validated.contains(t));
    EXPECT_TRUE(d->status().ok());
  }
}

TEST(shards, the_tail_after_any_batch_is_the_same_from_a_folder_opened_again) {
  const scratch_folder folder;
  write_counting(folder.at("s"), 30, 50, {.vocabulary = 2000, .end_of_text = 0, .shard_tokens = 200, .validation = 0.1, .seed = 1});
  const auto whole = *shard_dataset::open(folder.at("s"), 8);
  std::vector<batch_ids> all;
  for (std::int64_t k = 0; k < 60; ++k) all.push_back(training(whole, 5, k, 4, 9));
  for (const std::int64_t k : {1, 17, 59}) {
    const auto again = *shard_dataset::open(folder.at("s"), 8);
    EXPECT_EQ(again.hash(), whole.hash());
    for (std::int64_t i = k; i < 60; ++i) ASSERT_EQ(training(again, 5, i, 4, 9), all[std::size_t(i)]) << k;
  }
  EXPECT_NE(training(whole, 6, 0, 4, 9), all[0]);
  const std::int64_t far = std::int64_t(1) << 40;
  EXPECT_EQ(training(whole, 5, far, 4, 9), training(whole, 5, far, 4, 9));
  EXPECT_NE(training(whole, 5, far, 4, 9), training(whole, 5, far + (std::int64_t(1) << 33), 4, 9)) << "the cursor has 64 bits";
  EXPECT_TRUE(whole.status().ok());
}

TEST(shards, too_few_windows_are_refused_with_their_number) {
  const scratch_folder folder;
  write_counting(folder.at("s"), 20, 9, {.vocabulary = 2000, .end_of_text = 0, .shard_tokens = 20, .validation = 0.1, .seed = 1});
  const auto d = *shard_dataset::open(folder.at("s"), 8);
  EXPECT_TRUE(d.check(9, 18).ok());  // 20 shards of one document, two of them for validation
  const auto status = d.check(9, 19);
  EXPECT_NE(status.error().what.find("have 18 windows of 9 tokens, a batch takes 19"), std::string::npos) << status.error().line();
  EXPECT_FALSE(d.check(10, 1).ok());
  EXPECT_FALSE(d.check(0, 1).ok());
}

TEST(shards, a_model_may_have_more_ids_than_the_tokenizer_but_not_fewer) {
  const scratch_folder folder;
  write_counting(folder.at("s"), 2, 9, {.vocabulary = 300, .end_of_text = 0, .shard_tokens = 20, .validation = 0, .seed = 1});
  auto d = *shard_dataset::open(folder.at("s"), 8);
  EXPECT_TRUE(d.take_vocabulary(70000).ok());
  EXPECT_EQ(d.vocab().size(), 70000);
  EXPECT_EQ(d.take_vocabulary(299).error().code, errc::model_mismatch);
  training(d, 1, 0, 1, 9);
  EXPECT_TRUE(d.status().ok()) << "ids are compared with the vocabulary of the shards";
}

TEST(shards, damaged_shards_are_refused_at_opening_by_the_hash_or_when_they_are_read) {
  const scratch_folder folder;
  const shard_options o{.vocabulary = 300, .end_of_text = 0, .shard_tokens = 100, .validation = 0, .seed = 1};
  write_counting(folder.at("s"), 1, 199, o);
  const std::string good = folder.read("s/shard-00001.bin");
  folder.put("s/shard-00001.bin", good.substr(2));
  EXPECT_NE(shard_dataset::open(folder.at("s"), 8).error().line().find("shard-00001.bin: has 198 bytes, its 100 tokens take 200"),
            std::string::npos);
  std::filesystem::remove(folder.at("s/shard-00001.bin"));
  EXPECT_EQ(shard_dataset::open(folder.at("s"), 8).error().code, errc::not_found);
  std::filesystem::create_directory(folder.at("s/shard-00001.bin"));
  EXPECT_EQ(shard_dataset::open(folder.at("s"), 8).error().code, errc::unreadable);
  std::filesystem::remove(folder.at("s/shard-00001.bin"));

  folder.put("s/shard-00001.bin", replaced(good, std::string("\x65\x00", 2), std::string("\x66\x00", 2)));
  EXPECT_EQ(shard_dataset::open(folder.at("s"), 8)->verify().error().code, errc::corrupt);

  folder.put("s/shard-00001.bin", replaced(good, std::string("\x65\x00", 2), std::string("\x2c\x01", 2)));
  const auto d = *shard_dataset::open(folder.at("s"), 8);
  EXPECT_EQ(d.verify().error().code, errc::bad_format);
  const auto b = training(d, 1, 0, 18, 10);  // all windows of the epoch
  ASSERT_FALSE(d.status().ok());
  EXPECT_NE(d.status().error().line().find("shard-00001.bin: token 0 is 300, the vocabulary has 300"), std::string::npos)
      << d.status().error().line();
  EXPECT_TRUE(std::all_of(b.tokens.begin(), b.tokens.end(), [](std::int32_t t) { return t >= 0 && t < 300; }));
  EXPECT_EQ(training(d, 1, 1, 2, 10).targets, ids(20, -1)) << "after a failure every batch is blank";

  folder.put("s/shard-00001.bin", good);
  const auto cut = *shard_dataset::open(folder.at("s"), 8);
  std::filesystem::resize_file(folder.at("s/shard-00001.bin"), 20);
  training(cut, 1, 0, 18, 10);
  EXPECT_EQ(cut.status().error().code, errc::unreadable);
  std::filesystem::remove(folder.at("s/manifest.json"));
  EXPECT_NE(shard_dataset::open(folder.at("s"), 8).error().line().find("has no manifest.json"), std::string::npos);
}

}  // namespace shards_test
}  // namespace isotope
