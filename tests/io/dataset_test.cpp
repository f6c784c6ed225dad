#include <gtest/gtest.h>

#include <algorithm>
#include <isotope/io/dataset.hpp>
#include <set>
#include <string>
#include <vector>

#include "io/scratch_folder.hpp"

namespace isotope {
namespace dataset_test {

using io::dataset, io::text_dataset, io::text_unit, io::token_dataset;
using ids = std::vector<std::int32_t>;

/// Tokens 0, 1, 2, ..., so that a window shows where it was read.
dataset counting(std::uint16_t count) {
  std::vector<std::uint16_t> tokens(count);
  for (std::uint16_t i = 0; i < count; ++i) tokens[i] = i;
  return dataset(io::vocabulary::of_tokens(65536), std::move(tokens));
}

TEST(dataset, characters_become_sorted_unique_code_points) {
  const auto data = text_dataset("b\u00e9a\U0001F600b", text_unit::characters, "t");
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->vocab(), io::vocabulary::of_characters({'a', 'b', 0xe9, 0x1f600}));
  EXPECT_TRUE(std::ranges::equal(data->tokens(), ids{1, 2, 0, 3, 1}));
}

TEST(dataset, bytes_are_their_own_ids) {
  const auto data = text_dataset("a\xff", text_unit::bytes, "t");
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->vocab().size(), 256);
  EXPECT_TRUE(std::ranges::equal(data->tokens(), ids{97, 255}));
}

TEST(dataset, text_that_is_not_utf8_names_the_byte_and_suggests_bytes) {
  const auto data = text_dataset("ab\u00e9\xff", text_unit::characters, "poem.txt");
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().code, errc::bad_format);
  EXPECT_EQ(data.error().line(), "poem.txt: not UTF-8 at byte 4 (fix: convert the text to UTF-8, or use bytes as units)");
}

TEST(dataset, more_characters_than_16_bits_number_are_refused) {
  std::string text;
  for (std::uint32_t code = 0x10000; code <= 0x20000; ++code) io::append_utf8(text, code);
  EXPECT_EQ(text_dataset(text, text_unit::characters, "t").error().code, errc::invalid_argument);
  text.resize(text.size() - 4);
  EXPECT_TRUE(text_dataset(text, text_unit::characters, "t").ok());
}

TEST(dataset, empty_input_is_refused_in_every_unit) {
  EXPECT_EQ(text_dataset("", text_unit::characters, "t").error().code, errc::invalid_argument);
  EXPECT_EQ(text_dataset("", text_unit::bytes, "t").error().code, errc::invalid_argument);
  EXPECT_EQ(token_dataset({}, 10, "t").error().code, errc::invalid_argument);
}

TEST(dataset, token_files_are_little_endian_16_bit_numbers) {
  const scratch_folder folder;
  const auto data = io::load_dataset(folder.put("t.bin", std::string("\x01\x00\x02\x01", 4)), text_unit::tokens, 300);
  ASSERT_TRUE(data.ok()) << data.error().line();
  EXPECT_TRUE(std::ranges::equal(data->tokens(), ids{1, 258}));
}

TEST(dataset, bad_token_files_say_what_is_wrong) {
  const std::vector<std::byte> bytes(5);
  EXPECT_EQ(token_dataset(bytes, 10, "t").error().code, errc::truncated);
  const std::uint16_t tokens[] = {1, 9, 10};
  const auto data = token_dataset(std::as_bytes(std::span(tokens)), 10, "t.bin");
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().what, "token 2 is 10, the vocabulary has 10");
  for (const std::int32_t vocab : {0, -1, 65537})
    EXPECT_EQ(token_dataset(std::as_bytes(std::span(tokens)), vocab, "t").error().code, errc::invalid_argument);
}

TEST(dataset, a_missing_file_is_not_found) {
  const scratch_folder folder;
  EXPECT_EQ(io::load_dataset(folder.at("absent"), text_unit::characters).error().code, errc::not_found);
}

TEST(dataset, the_last_tenth_validates) {
  for (const std::size_t n : {0u, 1u, 9u, 10u, 11u, 99u, 100u, 101u, 1003u}) {
    const dataset data = counting(static_cast<std::uint16_t>(n));
    EXPECT_EQ(data.training().size(), n * 9 / 10) << n;
    EXPECT_EQ(data.training().size() + data.validation().size(), n);
  }
  EXPECT_EQ(counting(100).validation()[0], 90);
}

TEST(dataset, ids_of_a_large_vocabulary_give_the_windows_of_small_ones) {
  const dataset small = counting(100);
  ids numbers(100);
  for (std::int32_t i = 0; i < 100; ++i) numbers[std::size_t(i)] = i;
  const dataset same(io::vocabulary::of_tokens(65536), numbers);
  EXPECT_TRUE(std::ranges::equal(same.tokens(), small.tokens()));
  EXPECT_EQ(same.hash(), small.hash());
  for (std::int32_t& i : numbers) i += 100000;
  const dataset large(io::vocabulary::of_tokens(128256), numbers);
  EXPECT_EQ(large.size(), 100u);
  EXPECT_NE(large.hash(), small.hash());
  EXPECT_TRUE(large.check(9).ok());
  EXPECT_FALSE(large.check(10).ok());
  EXPECT_EQ(large.validation_windows(4), small.validation_windows(4));
  ids a(12), b(12), c(12), d(12);
  small.training_batch(5, 2, 4, a, b);
  large.training_batch(5, 2, 4, c, d);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(c[i] == a[i] + 100000 && d[i] == b[i] + 100000);
  EXPECT_EQ(large.validation_batch(1, 4, c, d), small.validation_batch(1, 4, a, b));
  EXPECT_EQ(c[0], 100094);
  EXPECT_EQ(d[3], 100098);
}

TEST(dataset, too_short_a_text_says_what_there_is_and_what_is_needed) {
  EXPECT_TRUE(counting(100).check(9).ok());
  const auto status = counting(100).check(10);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().what, "windows of 10 tokens need 11 in each split; training has 90, validation (the last 10 %) has 10");
  EXPECT_TRUE(counting(110).check(10).ok());
  EXPECT_FALSE(counting(0).check(1).ok());
  EXPECT_FALSE(counting(100).check(0).ok());
  EXPECT_FALSE(counting(100).check(-1).ok());
}

TEST(dataset, targets_are_the_tokens_that_follow) {
  const dataset data = counting(1000);
  ids tokens(4 * 8), targets(4 * 8);
  data.training_batch(7, 3, 8, tokens, targets);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(targets[i], tokens[i] + 1);
    EXPECT_EQ(tokens[i], tokens[i / 8 * 8] + static_cast<std::int32_t>(i % 8));
    EXPECT_LT(targets[i], 900) << "training reads nothing of the validation split";
  }
}

TEST(dataset, a_training_row_is_a_function_of_seed_cursor_and_row_alone) {
  const dataset data = counting(60000);
  const auto starts = [&](std::uint64_t seed, std::int64_t cursor, std::size_t rows) {
    ids tokens(rows), targets(rows);
    data.training_batch(seed, cursor, 1, tokens, targets);
    return tokens;
  };
  EXPECT_EQ(starts(1, 5, 4), starts(1, 5, 4));
  const ids wide = starts(1, 5, 8), narrow = starts(1, 5, 4);
  EXPECT_TRUE(std::equal(narrow.begin(), narrow.end(), wide.begin())) << "more rows must not change the first";
  EXPECT_NE(starts(1, 5, 4), starts(2, 5, 4));
  EXPECT_NE(starts(1, 5, 4), starts(1, 6, 4));
  EXPECT_NE(starts(1, 5, 4), starts(1, 5 + (std::int64_t(1) << 32), 4));
}

TEST(dataset, every_start_is_drawn_and_about_equally_often) {
  const dataset data = counting(20);  // 18 training tokens, so windows of length 2 have 16 starts
  constexpr int draws = 16000;
  ids tokens(2 * draws), targets(2 * draws), count(16);
  data.training_batch(1, 0, 2, tokens, targets);
  for (std::size_t r = 0; r < draws; ++r) ++count.at(static_cast<std::size_t>(tokens[2 * r]));
  // The counts are binomial with mean 1000 and standard deviation sqrt(16000 / 16 * 15 / 16) = 31; six deviations are 184.
  for (const std::int32_t c : count) EXPECT_NEAR(c, 1000, 184);
}

TEST(dataset, validation_reads_every_window_once_and_pads_the_last_batch) {
  const dataset data = counting(230);  // 23 validation tokens from 207 on, so floor(22 / 5) = 4 windows of length 5
  EXPECT_EQ(data.validation_windows(5), 4);
  ids tokens(3 * 5), targets(3 * 5);
  std::set<std::int32_t> seen;
  EXPECT_EQ(data.validation_batch(0, 5, tokens, targets), 3);
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(tokens[i], 207 + static_cast<std::int32_t>(i));
    EXPECT_EQ(targets[i], tokens[i] + 1);
  }
  EXPECT_EQ(data.validation_batch(3, 5, tokens, targets), 1);
  EXPECT_EQ(tokens[0], 222);
  EXPECT_EQ(targets[4], 227);
  EXPECT_TRUE(std::all_of(tokens.begin() + 5, tokens.end(), [](auto t) { return t == 0; }));
  EXPECT_TRUE(std::all_of(targets.begin() + 5, targets.end(), [](auto t) { return t == -1; }));
  EXPECT_EQ(data.validation_batch(4, 5, tokens, targets), 0);
}

}  // namespace dataset_test
}  // namespace isotope
