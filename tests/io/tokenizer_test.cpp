#include <gtest/gtest.h>

#include <cstdint>
#include <isotope/io/byte_pair_train.hpp>
#include <isotope/io/tokenizer_file.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "io/scratch_folder.hpp"

namespace isotope {
namespace tokenizer_test {

using namespace io;
using ids = std::vector<std::int32_t>;
using texts = std::vector<std::string>;

template <split_rule Rule> texts pieces(std::string_view text) {
  texts all;
  const char *at = text.data(), *const end = at + text.size();
  const piece_scanner<Rule> scanner(unicode::data::get(), end);
  while (at != end) {
    const char* const next = scanner.next(at);
    all.emplace_back(at, next);
    at = next;
  }
  return all;
}

/// The file of a small tokenizer; `from` and `to` change it.
std::string small_file(split_rule rule = split_rule::gpt2, std::string_view from = {}, std::string_view to = {}) {
  static const std::string text = [] {
    std::string s;
    for (int i = 0; i < 40; ++i) s += "the thing that they thought of then, there; on no one's other hand. ";
    return s;
  }();
  std::string json = tokenizer_json(*train_byte_pair(text, {.size = 280, .least = 2, .rule = rule}), {"<|end|>", "<|end|>er"});
  if (!from.empty()) {
    const std::size_t at = json.find(from);
    EXPECT_NE(at, json.npos) << from;
    if (at != json.npos) json.replace(at, from.size(), to);
  }
  return json;
}

tokenizer small(split_rule rule = split_rule::gpt2) { return *tokenizer_from_json(small_file(rule), "t"); }

constexpr std::string_view words =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\nun\n##aff\n##able\n$\n5\n.\n00\n'"
    "\nt\ndon\n\xe4\xb8\xad\n\xce\xbf\xce\xb4\xce\xbf\xcf\x83\ni\n##i\n!\n";

std::string refusal(const result<tokenizer>& r) { return r ? "opened" : r.error().line(); }

// The expected pieces are those of the library of reference.
TEST(tokenizer, texts_are_split_as_by_the_pattern_of_gpt2) {
  const auto split = pieces<split_rule::gpt2>;
  EXPECT_EQ(split("DON'T don't  we'll\n\n x"), (texts{"DON", "'", "T", " don", "'t", " ", " we", "'ll", "\n\n", " x"}));
  EXPECT_EQ(split("a  b"), (texts{"a", " ", " b"}));
  EXPECT_EQ(split("a \n b"), (texts{"a", " \n", " b"}));
  EXPECT_EQ(split("a\u00a0b"), (texts{"a", "\u00a0", "b"}));
  EXPECT_EQ(split(" 12345 1\u00bd"), (texts{" 12345", " 1\u00bd"}));
  EXPECT_EQ(split("!?\r\n\r\n  end  "), (texts{"!?", "\r\n\r\n ", " end", "  "}));
  EXPECT_EQ(split("\tx \u3000y"), (texts{"\t", "x", " ", "\u3000", "y"}));
  EXPECT_EQ(split("'s'\u017f x'LL"), (texts{"'s", "'", "\u017f", " x", "'", "LL"}));
  EXPECT_EQ(split("e\u0301 a\xff\xc3"), (texts{"e", "\u0301", " a", "\xff\xc3"}));
}

TEST(tokenizer, texts_are_split_as_by_the_patterns_of_llama3_and_qwen2) {
  const auto llama = pieces<split_rule::llama3>, qwen = pieces<split_rule::qwen2>;
  for (const auto split : {llama, qwen}) {
    EXPECT_EQ(split("DON'T don't  we'll\n\n x"), (texts{"DON", "'T", " don", "'t", " ", " we", "'ll", "\n\n", " x"}));
    EXPECT_EQ(split("a\u00a0b"), (texts{"a", "\u00a0b"}));
    EXPECT_EQ(split("!?\r\n\r\n  end  "), (texts{"!?\r\n\r\n", " ", " end", "  "}));
    EXPECT_EQ(split("'s'\u017f x'LL"), (texts{"'s", "'\u017f", " x", "'LL"}));
    EXPECT_EQ(split("\tx \u3000y"), (texts{"\tx", " ", "\u3000y"}));
    EXPECT_EQ(split("e\u0301 a\u0301b"), (texts{"e", "\u0301", " a", "\u0301b"}));
  }
  EXPECT_EQ(llama(" 12345 1\u00bd"), (texts{" ", "123", "45", " ", "1\u00bd"}));
  EXPECT_EQ(qwen(" 12345 1\u00bd"), (texts{" ", "1", "2", "3", "4", "5", " ", "1", "\u00bd"}));
}

TEST(tokenizer, any_bytes_come_back_from_their_ids_and_in_a_stream) {
  std::mt19937 chance(1);
  for (const split_rule rule : {split_rule::gpt2, split_rule::llama3, split_rule::qwen2}) {
    const tokenizer t = small(rule);
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (std::size_t n = chance() % 200; n > 0; --n)
        if (chance() % 3 == 0) text += static_cast<char>(chance() % 256);
        else text += i % 7 == 0 ? std::string("aaaa") : std::string("the ");
      const auto made = t.encode(text, {.spans = true});
      ASSERT_TRUE(made.ok());
      std::string bytes;
      for (const auto& s : made->spans) bytes += text.substr(s.first, s.last - s.first);
      if (rule != split_rule::qwen2) { ASSERT_EQ(bytes, text); }  // NFC may compose characters
      std::string streamed;
      stream_decoder stream(t);
      for (const std::int32_t id : made->ids) streamed += *stream.add(id);
      streamed += stream.finish();
      ASSERT_EQ(streamed, *t.decode(made->ids));
      std::string valid, rest = text;
      take_characters(rest, valid, true);
      if (rule != split_rule::qwen2) { ASSERT_EQ(streamed, valid); }
    }
  }
}

TEST(tokenizer, a_long_piece_gets_the_ids_of_the_definition) {
  const tokenizer t = small();
  // The definition: again and again the pair of the lowest rank, the leftmost first.
  const auto trained = *train_byte_pair(std::string(5000, 'a') + "b", {.size = 262, .least = 1});
  const auto a = *tokenizer_from_json(tokenizer_json(trained, {}), "t");
  for (const std::size_t n : {1u, 2u, 3u, 63u, 64u, 65u, 66u, 127u, 1000u}) {
    ids wanted(n, a.id_of("a"));
    for (const merge& m : trained.merges)
      for (std::size_t i = 0; i + 1 < wanted.size(); ++i)
        if (wanted[i] == m.left && wanted[i + 1] == m.right) {
          wanted[i] = a.id_of(trained.tokens[std::size_t(m.left)] + trained.tokens[std::size_t(m.right)]);
          wanted.erase(wanted.begin() + std::ptrdiff_t(i) + 1);
        }
    EXPECT_EQ(a.encode(std::string(n, 'a'))->ids, wanted) << n;
  }
  EXPECT_EQ(*t.decode(t.encode(std::string(100'000, 'h'))->ids), std::string(100'000, 'h'));
}

TEST(tokenizer, special_tokens_are_found_by_the_longest_and_only_if_they_may_be) {
  const tokenizer t = small();
  const std::int32_t end = t.id_of("<|end|>"), longer = t.id_of("<|end|>er");
  EXPECT_EQ(t.size(), 282);
  EXPECT_EQ(t.encode("<|end|><|end|>e<|end|>er")->ids, (ids{end, end, t.id_of("e"), longer}));
  EXPECT_EQ(t.encode("")->ids, ids{});
  const auto plain = t.encode("the<|end|>", {.special = specials::plain});
  EXPECT_GT(plain->ids.size(), 5u);
  EXPECT_EQ(*t.decode(plain->ids), "the<|end|>");
  EXPECT_EQ(*t.decode(ids{end, t.id_of("e")}, false), "e");
  EXPECT_EQ(t.count("<|end|>"), 1u);
}

TEST(tokenizer, more_ids_than_the_limit_are_cut_or_refused) {
  const tokenizer t = *tokenizer_of_words(words, "vocab.txt");
  const auto cut = t.encode("hello world hello", {.limit = 4});
  EXPECT_EQ(cut->ids, (ids{2, 5, 6, 3}));
  EXPECT_EQ(cut->cut, 1u);
  EXPECT_EQ(t.encode_pair("hello", "world world world world", {.limit = 6})->ids, (ids{2, 5, 3, 6, 6, 3}));
  EXPECT_EQ(t.encode_pair("hello hello hello", "world world", {.limit = 6})->ids, (ids{2, 5, 5, 3, 6, 3}));
  EXPECT_EQ(t.encode("hello world", {.limit = 3, .over = over_limit::refuse}).error().line(),
            "encode: the text has 4 ids, and the limit is 3 (fix: raise the limit, or shorten the text)");
  EXPECT_FALSE(t.encode("hello", {.limit = 1}).ok());
}

TEST(tokenizer, words_are_cleaned_and_split_into_the_longest_pieces) {
  const tokenizer t = *tokenizer_of_words(words, "vocab.txt");
  const auto of = [&](std::string_view text) { return t.encode(text, {.framed = false})->ids; };
  EXPECT_EQ(t.encode("Hello world")->ids, (ids{2, 5, 6, 3}));
  EXPECT_EQ(of("unaffable"), (ids{7, 8, 9}));
  EXPECT_EQ(of("unaffablex"), ids{1});  // a part that is not known makes the word unknown
  EXPECT_EQ(of("$5.00"), (ids{10, 11, 12, 13}));
  EXPECT_EQ(of("don't"), (ids{16, 14, 15}));
  EXPECT_EQ(of("hel\u200blo w\u00f6rld\u0301"), (ids{5, 6}));
  EXPECT_EQ(of("hello\u4e2dworld\u3000hello"), (ids{5, 17, 6, 5}));
  EXPECT_EQ(of("\u039f\u0394\u039f\u03a3"), ids{18});  // no final sigma
  EXPECT_EQ(of("\u0130I"), (ids{19, 20}));
  EXPECT_EQ(of(std::string(100, 'I')).size(), 100u);
  EXPECT_EQ(of(std::string(101, 'I')), ids{1});
  EXPECT_EQ(of("[SEP][sep]"), (ids{3, 1, 1, 1}));
  EXPECT_EQ(of("hello\xff world"), (ids{5, 6}));
  const auto spans = t.encode("un\u0301affable h\u200bELLO!", {.spans = true})->spans;
  EXPECT_EQ(spans, (std::vector<token_span>{{0, 0}, {0, 2}, {4, 7}, {7, 11}, {12, 20}, {20, 21}, {0, 0}}));
  EXPECT_EQ(*t.decode(ids{2, 7, 8, 9, 5, 12, 3}, false), "unaffable hello.");
  EXPECT_EQ(t.encode_pair("hello", "world")->types, (std::vector<std::uint8_t>{0, 0, 0, 1, 1}));
}

TEST(tokenizer, nfc_comes_before_merging_and_spans_lead_back) {
  const tokenizer t = small(split_rule::qwen2);
  EXPECT_EQ(t.encode("e\u0301")->ids, t.encode("\u00e9")->ids);
  EXPECT_EQ(t.encode("\u1100\u1161\u11a8 \xff")->ids, t.encode("\uac01 \xff")->ids);
  EXPECT_EQ(t.encode("the e\u0301", {.spans = true})->spans.back(), (token_span{4, 7}));
}

TEST(tokenizer, an_id_that_no_token_has_is_an_error_and_bytes_that_are_not_utf8_are_replaced) {
  const tokenizer t = small();
  for (const std::int32_t id : {-1, 282, 2'000'000'000})
    EXPECT_NE(t.decode(ids{id}).error().line().find("the id " + std::to_string(id) + " is none of the 282"), std::string::npos);
  EXPECT_FALSE(stream_decoder(t).add(282).ok());
  std::string out, bytes = "a\xf0\x9f\x98 \xe2\x82\xc3\xa9\xed\xa0\x80\xf4\x90\xe2\x82";
  take_characters(bytes, out, true);
  EXPECT_EQ(out, "a\ufffd \ufffd\u00e9\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd");
}

TEST(tokenizer, training_is_the_same_each_time_and_takes_the_lowest_of_equal_pairs) {
  EXPECT_EQ(small_file(), small_file());
  const auto made = *train_byte_pair("cd ab ab cd", {.size = 257});
  ASSERT_EQ(made.merges.size(), 1u);
  EXPECT_EQ(made.tokens.back(), "ab");
  EXPECT_TRUE(train_byte_pair("ab", {.size = 300, .least = 2})->merges.empty());
  EXPECT_FALSE(train_byte_pair("ab", {.size = 255}).ok());
}

TEST(tokenizer, a_file_that_asks_for_what_is_not_known_is_refused_by_name) {
  const auto refuses = [](std::string_view from, std::string_view to, std::string_view part, split_rule rule = split_rule::gpt2) {
    const std::string line = refusal(tokenizer_from_json(small_file(rule, from, to), "file"));
    EXPECT_TRUE(line.starts_with("file") && line.find(part) != line.npos) << line << "\nwithout " << part;
  };
  EXPECT_EQ(refusal(tokenizer_from_json(small_file(), "file")), "opened");
  refuses("\"normalizer\":null", R"("normalizer":{"type":"NFKC"})", "the normalizer of BPE \"NFKC\" is not known here");
  refuses("\"type\":\"BPE\"", "\"type\":\"Unigram\"", "the model \"Unigram\"");
  refuses("\"dropout\":null", "\"dropout\":0.1", "'dropout' of BPE is set");
  refuses("\"dropout\":null", "\"drop\":null", "the field 'drop' of BPE");
  refuses("\"version\"", "\"verse\"", "the field 'verse'");
  refuses("\"1.0\"", "\"2.0\"", "2.0");
  refuses("{\"type\":\"ByteLevel\",\"add_prefix_space\":false", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true", "add_prefix_space");
  refuses("\"use_regex\":true", "\"use_regex\":false", "not split");
  refuses("\"use_regex\":true", "\"use_regex\":1", "'use_regex' is 1");
  refuses("{1,3}", "{1,4}", "the pattern \"(?i:'s", split_rule::llama3);
  refuses("Isolated", "Removed", "\"Removed\"", split_rule::llama3);
  refuses("\"lstrip\":false", "\"lstrip\":true", "'lstrip' of the added token \"<|end|>\"");
  refuses("\"id\":281", "\"id\":280", "has the id of another token");
  refuses("\"id\":281", "\"id\":5", "has the id of another token");
  refuses("\"id\":281", "\"id\":2000000000", "lies far");
  refuses("\"<|end|>er\"", "\"<|end|>\"", "stands twice");
  refuses("\"!\":0", "\"!\":99999999", "lies far");
  refuses("\"!\":0", "\"!\":1", "has the id of another token");
  refuses("\"!\":0", "\"!\":-1", "not a whole number");
  refuses("\"!\":0", "\"!\":0.5", "not a whole number");
  refuses("\"!\":0", "\"\\u4e2d\":0", "stands for no byte");
  refuses("\"!\":0,", "", "the byte 33 has no token");
  refuses("\"!\":0", "\"!\":0,\"!\":0", "stands twice");
  refuses("[\"t\",\"h\"]", "[\"t\",\"zz\"]", "\"zz\", which the vocabulary lacks");
  refuses("[\"t\",\"h\"]", "[\"t\",\"!\"]", "makes a token that the vocabulary lacks");
  refuses("[\"t\",\"h\"]", "[\"t\",\"h\"],[\"t\",\"h\"]", "stands twice");
  refuses("[\"t\",\"h\"]", "\"t h e\"", "not two tokens");
  refuses("[\"t\",\"h\"]", "7", "neither a string nor two");
  refuses("\"decoder\":{", "\"decoder\":null,\"decoder\":{", "stands twice");
}

TEST(tokenizer, a_truncated_or_hostile_file_is_an_error) {
  const std::string whole = small_file();
  for (std::size_t size = 0; size + 2 < whole.size(); size += 97)
    EXPECT_FALSE(tokenizer_from_json(whole.substr(0, size), "file").ok()) << size;
  EXPECT_FALSE(tokenizer_from_json(std::string(100'000, '['), "file").ok());
  EXPECT_FALSE(tokenizer_from_json("[1,2,3]", "file").ok());
  EXPECT_NE(refusal(tokenizer_of_words("[UNK]\n\n", "v")).find("is empty"), std::string::npos);
  EXPECT_NE(refusal(tokenizer_of_words("a\n", "v")).find("lacks the token \"[UNK]\""), std::string::npos);
  EXPECT_NE(refusal(tokenizer_of_words("[UNK]\na\na\n", "v")).find("\"a\" with the id 2 stands twice"), std::string::npos);
  EXPECT_NE(refusal(tokenizer_of_words("[UNK]\n\xff\n", "v")).find("v:2: is not UTF-8"), std::string::npos);
}

TEST(tokenizer, a_folder_is_opened_by_what_it_has) {
  const scratch_folder folder;
  const auto opened = [&] { return refusal(open_tokenizer(folder.at(""))); };
  EXPECT_NE(opened().find("the folder has no tokenizer"), std::string::npos);
  ASSERT_TRUE(write_file(folder.at("vocab.txt"), words).ok());
  EXPECT_EQ(open_tokenizer(folder.at(""))->encode("hello")->ids, (ids{2, 5, 3}));
  std::string vocab = "{";
  for (std::uint32_t b = 0; b < 256; ++b)
    vocab += json_string(byte_characters.text_of(std::string(1, static_cast<char>(b)))) + ":" + std::to_string(b) + ",";
  ASSERT_TRUE(write_file(folder.at("vocab.json"), vocab + "\"ab\":256,\"<|endoftext|>\":257}").ok());
  ASSERT_TRUE(write_file(folder.at("merges.txt"), "#version: 0.2\na b\n").ok());
  EXPECT_EQ(open_tokenizer(folder.at(""))->encode("abb<|endoftext|>")->ids, (ids{256, 98, 257}));
  ASSERT_TRUE(write_file(folder.at("merges.txt"), "#version: 0.2\na b\na  c\n").ok());
  EXPECT_NE(opened().find("merges.txt:3: the merge"), std::string::npos);
  ASSERT_TRUE(write_file(folder.at("tokenizer.json"), small_file()).ok());
  EXPECT_EQ(opened(), "opened");
}

}  // namespace tokenizer_test
}  // namespace isotope
