#include <gtest/gtest.h>

#include <isotope/config/toml.hpp>
#include <string>
#include <utility>
#include <vector>

namespace isotope {
namespace toml_test {

using config::parse_toml, config::written_as;

/// "key=value;" for every entry, or the failure's line.
std::string flat(const std::string& text) {
  const auto got = parse_toml(text, "c");
  if (!got.ok()) return got.error().line();
  std::string out;
  for (const auto& e : *got) out += e.key + "=" + e.value + ";";
  return out;
}

/// The value of `x = ...`.
std::string value_of(const std::string& text) { return flat("x = " + text); }

TEST(toml, tables_and_dotted_keys_become_paths) {
  EXPECT_EQ(flat("a = 1\n[b]\nc.d = 2\nc.e = 3\n[b.f]\ng = 4\n[ h . \"i\" ]\n'j' = 5\n"), "a=1;b.c.d=2;b.c.e=3;b.f.g=4;h.i.j=5;");
  EXPECT_EQ(flat("[a.b]\nx = 1\n[a]\ny = 2\n"), "a.b.x=1;a.y=2;") << "a header may come after a longer one";
  EXPECT_EQ(flat("x = {a = 1, b.c = 2, d = {}, e = { f = 3 }}\n"), "x.a=1;x.b.c=2;x.e.f=3;");
}

TEST(toml, blanks_comments_and_line_ends_are_skipped) {
  EXPECT_EQ(flat("\xef\xbb\xbf# one\r\n\r\n \ta\t=  1 # two\r\n[ b ] # three\n\nc = 2"), "a=1;b.c=2;");
  EXPECT_EQ(flat(""), "");
  EXPECT_EQ(flat("\n # \u00e9"), "");
}

TEST(toml, lines_are_counted_through_strings_and_continuations) {
  const auto got = parse_toml("a = '''\n\n'''\nb = \"\"\"x\\\n\n  y\"\"\"\r\nc = 1", "c.toml");
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ((*got)[0].where, "c.toml:1");
  EXPECT_EQ((*got)[1].where, "c.toml:4");
  EXPECT_EQ((*got)[2].where, "c.toml:7");
}

TEST(toml, numbers_are_normalised) {
  const std::vector<std::pair<const char*, const char*>> cases = {{"0", "0"},
                                                                  {"-0", "0"},
                                                                  {"+7", "7"},
                                                                  {"1_000_000", "1000000"},
                                                                  {"0xDEAD_beef", "3735928559"},
                                                                  {"0o17", "15"},
                                                                  {"0b1010", "10"},
                                                                  {"1.5", "1.5"},
                                                                  {"-3.14e-2", "-0.0314"},
                                                                  {"1e+06", "1e+06"},
                                                                  {"6.6_2E3", "6620.0"},
                                                                  {"64.0", "64.0"},
                                                                  {"inf", "inf"},
                                                                  {"-inf", "-inf"},
                                                                  {"+nan", "nan"}};
  for (const auto& [written, read] : cases) {
    EXPECT_EQ(value_of(written), "x=" + std::string(read) + ";");
    EXPECT_EQ((*parse_toml("x = " + std::string(written), "c"))[0].form, written_as::number);
  }
}

TEST(toml, malformed_numbers_and_bare_words_are_refused) {
  for (const char* bad : {"01",
                          "-01",
                          "1_",
                          "_1",
                          "1__0",
                          "1.",
                          ".5",
                          "1.e3",
                          "1e",
                          "1e+",
                          "1_.5",
                          "1._5",
                          "0x",
                          "0x_1",
                          "0x1_",
                          "0x1__2",
                          "0b2",
                          "-0x1",
                          "0xfffffffffffffffff",
                          "--1",
                          "yes",
                          "True",
                          "a",
                          "1a",
                          "1.2.3",
                          "infinity",
                          "",
                          "+",
                          "# 1"})
    EXPECT_FALSE(parse_toml("x = " + std::string(bad), "c").ok()) << bad;
}

TEST(toml, strings_of_every_kind_are_read) {
  EXPECT_EQ(value_of(R"("a\"\\\b\f\n\r\t\u00e9\U0001F600")"), "x=a\"\\\b\f\n\r\t\u00e9\U0001F600;");
  EXPECT_EQ(value_of(R"('a\n"b')"), "x=a\\n\"b;");
  EXPECT_EQ(value_of("\"\"\"\na\nb\"\"\""), "x=a\nb;");
  EXPECT_EQ(value_of("\"\"\"a\\\n\n \t b\\\"\"\"\"\"\""), "x=ab\"\"\";");
  EXPECT_EQ(value_of("'''\n\\ \"'''''"), "x=\\ \"'';");
  EXPECT_EQ(value_of("''"), "x=;");
  EXPECT_EQ(value_of("\"\u00e9\u3042 #\" # \u3042"), "x=\u00e9\u3042 #;");
}

TEST(toml, malformed_strings_are_refused) {
  for (const char* bad : {"\"a", "'a", "\"a\nb\"", "\"\"\"a", "'''a''", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\U00110000\"",
                          "\"\\u+123\"", "\"\\", "\"\"\"\\ a\"\"\"", "'a' 'b'", "'a'\"b\"", "\"a\\\nb\""})
    EXPECT_FALSE(parse_toml("x = " + std::string(bad), "c").ok()) << bad;
}

TEST(toml, dates_and_what_resembles_them_are_refused) {
  for (const char* date :
       {"1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "1979-05-27T00:32:00.99-07:00", "1979-05-27T:0:30702", "12-3"}) {
    const auto got = parse_toml("a = 1\nx = " + std::string(date) + "\n", "c");
    ASSERT_FALSE(got.ok()) << date;
    EXPECT_NE(got.error().line().find("date or time"), std::string::npos) << got.error().line();
    EXPECT_EQ(got.error().where, "c:2");
  }
  EXPECT_TRUE(parse_toml("x = 1e-5\n", "c").ok());
  EXPECT_TRUE(parse_toml("x = -5\n", "c").ok());
}

TEST(toml, a_name_has_one_meaning) {
  EXPECT_EQ(flat("a = 1\na = 2"),
            "c:2: not TOML: Error while parsing key-value pair: cannot redefine existing integer 'a' (fix: correct the line)");
  for (const char* bad :
       {"a = 1\na.b = 2", "a.b = 1\na = 2", "[a]\n[a]", "[a]\nb = 1\n[a.b]", "a = 1\n[a]", "a = 1\n[a.b]", "a.b = 1\n[a]", "a.b = 1\n[a.b]",
        "x = {a = 1, a = 2}", "x = {}\nx.a = 1", "x = {}\n[x]", "x = {a = 1}\n[x.b]", "[a.b]\n[a]\nb.c = 1", "[a]\nb.c = 1\n[a.b]"})
    EXPECT_FALSE(parse_toml(bad, "c").ok()) << bad;
}

TEST(toml, malformed_keys_and_lines_are_refused_with_their_line) {
  for (const char* bad : {"= 1",     "a",         "a =",         "a = 1 b", "a b = 1",    ".a = 1",       "a. = 1",     "a..b = 1",
                          "[a",      "[]",        "[a] b",       "[.a]",    "[=",         "[[a]]",        "\u00e9 = 1", "x = \u00e9",
                          "'' = 1",  "'a.b' = 1", "'''a''' = 1", "\"a = 1", "x = {a = 1", "x = {a = 1,}", "x = {,}",    "x = {\na = 1}",
                          "x = [1]", "x=[[}PE",   "]",           "}"})
    EXPECT_EQ(flat("\n" + std::string(bad)).substr(0, 14), "c:2: not TOML:") << bad;
}

TEST(toml, characters_outside_ascii_pass_in_strings_and_comments_alone) {
  EXPECT_EQ(flat("'\u00e9' = \"\"\"\n\u00e9\\\n  x\u00e9\"\"\" # \u00e9"), "\u00e9=\u00e9x\u00e9;");
  for (const char* bad :
       {"x = 0\"\u00e9\"", "x = 0{\"\u00e9\" = 1}", "x = 0=\"\u00e9\"", "x = 1979-05-27 0\"\u00e9\"", "x = 1979-05-27 0 = 2",
        "x = \"\"\"\\\u00e9\"\"\"", "x = \"\"\"\\ \u00e9\"\"\"", "x = true\u00e9", "x = \"a\"\u00e9"})
    EXPECT_EQ(flat("\n" + std::string(bad)).substr(0, 14), "c:2: not TOML:") << bad;
  EXPECT_EQ(flat("x = \"\"\"a\\\n \u00e9\"\"\"").substr(0, 64), "c:1: not TOML: a character outside ASCII right after a backslash");
}

TEST(toml, control_characters_and_invalid_utf8_are_refused_everywhere) {
  for (const std::string bad :
       {"a = 1\x01", "# \x7f", "a = '\x02'", "a = '''\x1f'''", "# \xff", "a = '\xc0\x80'", "a = 1\rb = 2", "a = '''\r'''"})
    EXPECT_EQ(flat("\n" + bad).substr(0, 14), "c:2: not TOML:") << bad;
  EXPECT_FALSE(parse_toml(std::string_view("a = 1\0", 6), "c").ok());
}

TEST(toml, depth_is_bounded) {
  std::string dots = "a", braces = "1";
  for (int i = 0; i < 31; ++i) dots += ".a";
  for (int i = 0; i < 32; ++i) braces = "{a = " + braces + "}";
  EXPECT_TRUE(parse_toml(dots + " = 1", "c").ok());
  EXPECT_FALSE(parse_toml(dots + ".a = 1", "c").ok());
  EXPECT_FALSE(parse_toml("[" + dots + ".a]", "c").ok());
  EXPECT_TRUE(parse_toml("x = " + braces, "c").ok());
  EXPECT_FALSE(parse_toml("x = {a = " + braces + "}", "c").ok());
}

}  // namespace toml_test
}  // namespace isotope
