#include <gtest/gtest.h>

#include <cmath>
#include <isotope/io/json.hpp>
#include <isotope/io/json_text.hpp>
#include <limits>
#include <string>

namespace isotope {
namespace json_test {

using io::json, io::parse_json;

TEST(json, a_document_of_every_kind_is_read) {
  const auto root = parse_json("{\"a\": [1, -2.5e+3, true, false, null],\n \"b\": {\"c\": \"x\"}}", "t");
  ASSERT_TRUE(root.ok()) << root.error().line();
  const json& a = *root->find("a");
  ASSERT_EQ(a.items.size(), 5u);
  EXPECT_EQ(a.items[0].text, "1");
  EXPECT_EQ(a.items[1].text, "-2.5e+3");
  EXPECT_TRUE(a.items[2].is == json::kind::boolean && a.items[2].boolean);
  EXPECT_TRUE(a.items[3].is == json::kind::boolean && !a.items[3].boolean);
  EXPECT_EQ(a.items[4].is, json::kind::null);
  EXPECT_EQ(root->find("b")->find("c")->text, "x");
  EXPECT_EQ(root->find("b")->line, 2);
  EXPECT_EQ(root->find("z"), nullptr);
}

TEST(json, escapes_and_surrogate_pairs_become_utf8) {
  const auto root = parse_json(R"("\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00")", "t");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->text, "\"\\/\b\f\n\r\t\u00e9\u20ac\U0001F600");
}

TEST(json, what_is_not_json_is_refused) {
  for (const char* bad : {"",
                          " ",
                          "{",
                          "}",
                          "[1,]",
                          "{\"a\":1,}",
                          "{\"a\" 1}",
                          "{a:1}",
                          "01",
                          "1.",
                          "-",
                          ".5",
                          "1e",
                          "+1",
                          "nul",
                          "truex",
                          "\"a",
                          "\"\\x\"",
                          "\"\\u12\"",
                          "\"\\ud800\"",
                          "\"\\udc00\"",
                          "\"\x01\"",
                          "\"\xff\"",
                          "1 2",
                          "\"\\ud800\\u0041\"",
                          "[1 2]",
                          "'a'",
                          "\"\xc0\x80\"",
                          "\"\xed\xa0\x80\"",
                          "NaN"}) {
    const auto got = parse_json(bad, "t");
    ASSERT_FALSE(got.ok()) << bad;
    EXPECT_EQ(got.error().code, errc::bad_format) << bad;
  }
}

TEST(json, a_repeated_key_is_refused_with_its_line) {
  const auto got = parse_json("{\"a\":1,\n\"a\":1}", "file");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().line(), "file:2: not JSON: the key 'a' stands twice (fix: correct the file there)");
}

TEST(json, the_first_repeated_key_of_many_is_refused_with_its_line) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += "\"a common start " + std::to_string(i) + "\":0,\n";
  EXPECT_TRUE(parse_json(text + "\"a common start\":0}", "t").ok());
  const auto got = parse_json(text + "\"a common start 7\":0,\n\"a common start 3\":0}", "t");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().line(), "t:1001: not JSON: the key 'a common start 7' stands twice (fix: correct the file there)");
}

TEST(json, the_number_of_values_is_bounded_if_wanted) {
  EXPECT_TRUE(parse_json("[1,{\"a\":2},3]", "t", 4).ok());
  const auto got = parse_json("[1,{\"a\":2},3]", "t", 3);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().line(), "t:1: not JSON: the document holds too many values (fix: correct the file there)");
}

TEST(json, depth_is_bounded) {
  EXPECT_TRUE(parse_json(std::string(32, '[') + std::string(32, ']'), "t").ok());
  EXPECT_FALSE(parse_json(std::string(100'000, '['), "t").ok());
}

TEST(json, a_written_string_reads_back) {
  const std::string text = "quote \" slash \\ \n\r\t\x01 \u00e9 \U0001F600 /";
  const auto back = parse_json(io::json_string(text), "t");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->text, text);
}

TEST(json, bytes_that_are_not_utf8_are_written_as_the_replacement_character) { EXPECT_EQ(io::json_string("a\xff"), "\"a\ufffd\""); }

TEST(json, numbers_are_written_shortest_and_infinities_as_strings) {
  EXPECT_EQ(io::json_number(0.1), "0.1");
  EXPECT_EQ(io::json_number(-0.0), "-0");
  EXPECT_EQ(io::json_number(std::numeric_limits<double>::infinity()), "\"inf\"");
  EXPECT_EQ(io::json_number(-std::numeric_limits<double>::infinity()), "\"-inf\"");
  EXPECT_EQ(io::json_number(std::numeric_limits<double>::quiet_NaN()), "\"nan\"");
  EXPECT_EQ(io::number_text(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

}  // namespace json_test
}  // namespace isotope
