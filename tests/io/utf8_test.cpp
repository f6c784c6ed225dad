#include <gtest/gtest.h>

#include <isotope/io/utf8.hpp>
#include <string>

namespace isotope {
namespace utf8_test {

TEST(utf8, every_code_point_survives_encoding_and_decoding) {
  for (std::uint32_t code = 0; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    std::string text;
    io::append_utf8(text, code);
    const auto back = io::decode_utf8(text, 0);
    ASSERT_EQ(back.code, code);
    ASSERT_EQ(back.bytes, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) ASSERT_EQ(io::decode_utf8(text.substr(0, cut), 0).bytes, 0u) << code;
  }
}

TEST(utf8, overlong_forms_surrogates_stray_bytes_and_large_values_are_refused) {
  for (const char* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3\x28", "\xe2\x28\xa1"})
    EXPECT_EQ(io::decode_utf8(bad, 0).bytes, 0u) << bad;
}

}  // namespace utf8_test
}  // namespace isotope
