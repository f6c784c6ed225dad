#include <gtest/gtest.h>

#include <isotope/io/vocabulary.hpp>
#include <string>
#include <vector>

namespace isotope {
namespace vocabulary_test {

using io::vocabulary;

const vocabulary letters = vocabulary::of_characters({'a', 'b', 0xe9, 0x1f600});

std::string decoded(const vocabulary& v, const std::vector<std::int32_t>& ids) {
  std::string out;
  for (const std::int32_t id : ids) v.decode(id, out);
  return out;
}

TEST(vocabulary, characters_are_encoded_by_rank_and_decoded_back) {
  const std::string text = "ba\u00e9\U0001F600a";
  const auto ids = letters.encode(text);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<std::int32_t>{1, 0, 2, 3, 0}));
  EXPECT_EQ(decoded(letters, *ids), text);
}

TEST(vocabulary, a_character_that_the_training_text_lacked_is_named_with_its_byte) {
  const auto ids = letters.encode("\u00e9z", "prompt");
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.error().line(), "prompt: the character \"z\" at byte 2 is not among the 4 of the training text (fix: leave it out)");
}

TEST(vocabulary, text_that_is_not_utf8_is_refused_with_its_byte) {
  const auto ids = letters.encode("ab\xff");
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().what.find("byte 2"), std::string::npos);
}

TEST(vocabulary, bytes_encode_everything) {
  const auto ids = vocabulary::of_bytes().encode("a\xff");
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<std::int32_t>{97, 255}));
  EXPECT_EQ(decoded(vocabulary::of_bytes(), *ids), "a\xff");
}

TEST(vocabulary, opaque_tokens_decode_as_numbers_and_encode_nothing) {
  EXPECT_EQ(decoded(vocabulary::of_tokens(50257), {7, 50256, 50257, -1}), "7 50256 ");
  EXPECT_FALSE(vocabulary::of_tokens(50257).encode("x").ok());
}

TEST(vocabulary, json_brings_each_kind_back) {
  for (const auto& v : {letters, vocabulary::of_bytes(), vocabulary::of_tokens(50257)}) {
    const auto back = vocabulary::from_json(v.to_json(), "t");
    ASSERT_TRUE(back.ok()) << v.to_json();
    EXPECT_EQ(*back, v);
  }
}

TEST(vocabulary, json_that_it_does_not_write_is_refused) {
  for (const char* bad : {"", "{}", "[]", R"({"unit":"words","size":1,"characters":""})", R"({"unit":"bytes","size":255,"characters":""})",
                          R"({"unit":"tokens","size":0,"characters":""})", R"({"unit":"tokens","size":-5,"characters":""})",
                          R"({"unit":"tokens","size":"x","characters":""})", R"({"unit":"characters","size":2,"characters":"ba"})",
                          R"({"unit":"characters","size":2,"characters":"aa"})", R"({"unit":"characters","size":3,"characters":"ab"})",
                          R"({"unit":"characters","size":0,"characters":""})", R"({"unit":{},"size":[],"characters":null})"})
    EXPECT_FALSE(vocabulary::from_json(bad, "t").ok()) << bad;
}

}  // namespace vocabulary_test
}  // namespace isotope
