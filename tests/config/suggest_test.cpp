#include <gtest/gtest.h>

#include <isotope/config/suggest.hpp>
#include <string>
#include <vector>

namespace isotope {
namespace suggest_test {

using config::edit_distance, config::nearest;

TEST(suggest, distances_count_insertions_deletions_replacements_and_swaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("width", "widht"), 1u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u) << "a swapped pair is not edited again";
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2u);
}

TEST(suggest, the_nearest_word_is_found_and_far_words_are_not) {
  const std::vector<std::string> known = {"model.width", "model.heads", "steps"};
  EXPECT_EQ(nearest("model.widht", known), "model.width");
  EXPECT_EQ(nearest("width", known), "model.width");
  EXPECT_EQ(nearest("stops", known), "steps");
  EXPECT_EQ(nearest("banana", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest(std::string(100'000, 's'), known), "");
}

}  // namespace suggest_test
}  // namespace isotope
