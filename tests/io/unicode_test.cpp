#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdint>
#include <isotope/io/unicode.hpp>
#include <isotope/io/utf8.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace isotope {
namespace unicode_test {

namespace unicode = io::unicode;

constexpr std::string_view version = "15.0.0";
constexpr bool surrogate(std::uint32_t c) { return c >= 0xd800 && c < 0xe000; }

std::vector<std::uint32_t> normalized(const std::vector<std::uint32_t>& codes, bool composed) {
  std::vector<unicode::traced> all;
  for (const std::uint32_t c : codes) unicode::append_nfd(all, c, 0, 1);
  unicode::sort_marks(all);
  if (composed) unicode::compose(all);
  std::vector<std::uint32_t> out;
  for (const auto& t : all) out.push_back(t.code);
  return out;
}

std::vector<std::uint32_t> normalized_by_utf8proc(const std::vector<std::uint32_t>& codes, bool composed) {
  std::vector<utf8proc_int32_t> parts(codes.size() * 32 + 1);
  utf8proc_ssize_t count = 0;
  for (const std::uint32_t c : codes) {
    int boundary = 0;
    count += utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data() + count, 32, UTF8PROC_DECOMPOSE, &boundary);
  }
  for (utf8proc_ssize_t i = 1; i < count; ++i)  // canonical order, by the definition
    for (utf8proc_ssize_t k = i; k > 0; --k) {
      const int left = utf8proc_get_property(parts[std::size_t(k - 1)])->combining_class;
      const int right = utf8proc_get_property(parts[std::size_t(k)])->combining_class;
      if (right == 0 || left <= right) break;
      std::swap(parts[std::size_t(k - 1)], parts[std::size_t(k)]);
    }
  if (composed) count = utf8proc_normalize_utf32(parts.data(), count, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  return {parts.begin(), parts.begin() + count};
}

/// Whether the tokenizers of reference normalize a code point as Unicode 15 does.
bool agreed(std::uint32_t c) { return c != unicode::reference::whole && !unicode::detail::among(unicode::reference::unordered, c); }

TEST(unicode, every_code_point_is_encoded_and_decoded_as_by_utf8proc) {
  for (std::uint32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 7) {
    if (surrogate(c)) continue;
    std::string ours, theirs;
    unicode::append(ours, c);
    io::append_utf8(theirs, c);
    ASSERT_EQ(ours, theirs) << c;
    const auto p = unicode::decode(ours.data(), ours.data() + ours.size());
    ASSERT_TRUE(p.code == c && p.bytes == ours.size()) << c;
  }
}

TEST(unicode, bytes_are_refused_where_utf8proc_refuses_them) {
  std::mt19937 chance(1);
  const unsigned char edges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
                                 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
  for (int i = 0; i < 200'000; ++i) {
    std::string s;
    for (std::size_t n = 1 + chance() % 4; n > 0; --n) s += static_cast<char>(edges[chance() % sizeof edges]);
    const auto ours = unicode::decode(s.data(), s.data() + s.size());
    const auto theirs = io::decode_utf8(s, 0);
    ASSERT_EQ(ours.bytes, theirs.bytes) << testing::PrintToString(s);
    ASSERT_EQ(ours.bytes != 0 ? ours.code : 0, theirs.bytes != 0 ? theirs.code : 0);
  }
}

TEST(unicode, classes_and_lower_case_differ_from_utf8proc_only_where_the_reference_is_listed_to) {
  if (utf8proc_unicode_version() != version) GTEST_SKIP() << "utf8proc has Unicode " << utf8proc_unicode_version();
  const auto& classes = unicode::data::get();
  namespace reference = unicode::reference;
  using unicode::detail::among;
  for (std::uint32_t c = 0; c < 0x110000; c += c < 0x32400 ? 1 : 5) {
    if (surrogate(c)) continue;
    const std::string_view category = utf8proc_category_string(static_cast<utf8proc_int32_t>(c));
    const auto is = [&](unicode::code_class bit) { return (classes[c] & bit) != 0; };
    ASSERT_EQ(is(unicode::letter), (category[0] == 'L') != among(reference::letters, c)) << c;
    ASSERT_EQ(is(unicode::number), (category[0] == 'N') != among(reference::numbers, c)) << c;
    ASSERT_EQ(is(unicode::punctuation), (category[0] == 'P') != among(reference::punctuation, c)) << c;
    ASSERT_EQ(is(unicode::control), (category == "Cc" || category == "Cf" || category == "Co") != among(reference::controls, c)) << c;
    ASSERT_EQ(is(unicode::mark), (category == "Mn") != among(reference::marks, c)) << c;
    ASSERT_EQ(is(unicode::space), (c >= 9 && c <= 13) || c == 0x85 || category[0] == 'Z') << c;
    const bool listed = unicode::detail::lower_in(reference::lower, c) != 0;
    ASSERT_TRUE(listed || unicode::lower(c) == static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)))) << c;
  }
}

TEST(unicode, normal_forms_of_code_points_and_of_random_texts_are_those_of_utf8proc) {
  if (utf8proc_unicode_version() != version) GTEST_SKIP() << "utf8proc has Unicode " << utf8proc_unicode_version();
  std::vector<std::uint32_t> lively;  // code points that normal forms treat in any way
  for (std::uint32_t c = 0; c < 0x30000; ++c) {
    if (surrogate(c) || !agreed(c)) continue;
    const auto apart = normalized_by_utf8proc({c}, false);
    if ((unicode::data::get()[c] & unicode::may_change) != 0 || apart.size() > 1) lively.push_back(c);
    ASSERT_EQ(normalized({c}, false), apart) << c;
    if (apart.size() == 1 && apart[0] == c) continue;
    ASSERT_EQ(normalized({c}, true), normalized_by_utf8proc({c}, true)) << c;
  }
  std::mt19937 chance(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint32_t> codes;
    for (std::size_t n = 1 + chance() % 6; n > 0; --n)
      codes.push_back(chance() % 4 == 0 ? 'a' + static_cast<std::uint32_t>(chance() % 26) : lively[chance() % lively.size()]);
    for (const bool composed : {false, true})
      ASSERT_EQ(normalized(codes, composed), normalized_by_utf8proc(codes, composed)) << testing::PrintToString(codes);
  }
}

TEST(unicode, a_text_that_the_quick_check_passes_does_not_change) {
  std::mt19937 chance(2);
  int passed = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint32_t> codes;
    std::string text;
    for (std::size_t n = 1 + chance() % 3; n > 0; --n) {
      const std::uint32_t c = static_cast<std::uint32_t>(chance() % (chance() % 2 == 0 ? 0x3200 : 0x31000));
      if (surrogate(c)) continue;
      codes.push_back(c);
      unicode::append(text, c);
    }
    if (unicode::nfc_may_change(text)) continue;
    ++passed;
    ASSERT_EQ(normalized(codes, true), codes) << testing::PrintToString(codes);
  }
  EXPECT_GT(passed, 5000);
  EXPECT_TRUE(unicode::nfc_may_change("e\u0301"));
  EXPECT_FALSE(unicode::nfc_may_change("\u00e9 na\u00efve \u4e2d \xff"));
}

}  // namespace unicode_test
}  // namespace isotope
