#include <gtest/gtest.h>

#include <isotope/config/arguments.hpp>
#include <string>
#include <vector>

namespace isotope {
namespace {

using config::field, config::field_kind;

const std::vector<field> fields = {{"model.width", field_kind::integer, {}},   {"mlp.width", field_kind::integer, {}},
                                   {"steps", field_kind::integer, {}},         {"train.steps", field_kind::integer, {}},
                                   {"train.tie_all", field_kind::boolean, {}}, {"text", field_kind::text, {}}};

result<config::flag_layer> read(const std::vector<std::string>& arguments) { return config::read_flags(arguments, fields, {}); }

TEST(flags, a_value_follows_or_stands_behind_an_equals_sign) {
  const auto got = read({"--model-width", "3", "--text=a=b", "--mlp-width", "-4", "--text", ""});
  ASSERT_TRUE(got.ok()) << got.error().line();
  ASSERT_EQ(got->entries.size(), 4u);
  EXPECT_EQ(got->entries[0].key, "model.width");
  EXPECT_EQ(got->entries[0].value, "3");
  EXPECT_EQ(got->entries[1].value, "a=b");
  EXPECT_EQ(got->entries[2].value, "-4");
  EXPECT_EQ(got->entries[3].value, "");
}

TEST(flags, the_last_part_of_a_key_is_enough_when_one_field_has_it) {
  const auto got = read({"--tie-all"});
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ(got->entries[0].key, "train.tie_all");
  EXPECT_EQ(got->entries[0].value, "true");
}

TEST(flags, a_full_key_comes_before_a_last_part) { EXPECT_EQ(read({"--steps", "1"})->entries[0].key, "steps"); }

TEST(flags, an_ambiguous_flag_lists_its_meanings) {
  const auto got = read({"--width", "3"});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().line(), "flag --width: the flag is ambiguous (fix: give --model-width or --mlp-width)");
}

TEST(flags, booleans_take_no_value_and_are_negated_by_no) {
  const auto got = read({"--tie-all", "--no-tie-all", "--train-tie-all=true", "--no-train-tie-all"});
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ(got->entries[1].value, "false");
  EXPECT_EQ(got->entries[2].value, "true");
  EXPECT_EQ(got->entries[3].value, "false");
  EXPECT_FALSE(read({"--no-steps"}).ok());
  EXPECT_FALSE(read({"--no-tie-all=true"}).ok());
}

TEST(flags, an_unknown_flag_gets_a_suggestion) {
  EXPECT_EQ(read({"--stpes", "1"}).error().line(), "flag --stpes: unknown flag (fix: did you mean '--steps'?)");
  EXPECT_EQ(read({"--qqqqqqqqqq"}).error().line(), "flag --qqqqqqqqqq: unknown flag (fix: --help lists the flags)");
}

TEST(flags, a_missing_value_and_a_bare_word_are_refused) {
  EXPECT_EQ(read({"--steps"}).error().code, errc::missing_value);
  EXPECT_EQ(read({"--text", "--steps"}).error().code, errc::missing_value);
  EXPECT_EQ(read({"steps"}).error().code, errc::invalid_argument);
  EXPECT_EQ(read({"--"}).error().code, errc::invalid_argument);
  EXPECT_EQ(read({"-s"}).error().code, errc::invalid_argument);
  EXPECT_EQ(read({""}).error().code, errc::invalid_argument);
}

TEST(flags, names_are_made_from_keys) {
  EXPECT_EQ(config::flag_of("train.tie_all"), "--train-tie-all");
  EXPECT_EQ(config::variable_of("train.tie_all"), "ISOTOPE_TRAIN_TIE_ALL");
}

}  // namespace
}  // namespace isotope
