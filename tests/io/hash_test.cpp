#include <gtest/gtest.h>

#include <isotope/io/hash.hpp>
#include <string_view>

namespace isotope {
namespace hash_test {

std::uint64_t hash_of(std::initializer_list<std::string_view> parts) {
  io::hasher h;
  for (const std::string_view part : parts) h.add(std::as_bytes(std::span(part.data(), part.size())));
  return h.value();
}

TEST(hash, the_empty_input_has_the_published_value) { EXPECT_EQ(hash_of({}), 0x2d06800538d394c2u); }

TEST(hash, pieces_hash_as_their_concatenation) { EXPECT_EQ(hash_of({"ab", "", "cde"}), hash_of({"abcde"})); }

TEST(hash, one_bit_changes_the_value) { EXPECT_NE(hash_of({"abcde"}), hash_of({"abcdd"})); }

}  // namespace hash_test
}  // namespace isotope
