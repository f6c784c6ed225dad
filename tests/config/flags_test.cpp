#include <gtest/gtest.h>

#include <isotope/config/flags.hpp>
#include <string>
#include <vector>

namespace isotope {
namespace flags_test {

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

TEST(flags, the_last_of_equal_flags_stands_last_whatever_its_spelling) {
  const auto got = read({"--train-tie-all", "--steps", "1", "--no-tie-all", "--steps=2", "--text=", "--tie-all=x"});
  ASSERT_TRUE(got.ok()) << got.error().line();
  std::string all;
  for (const auto& e : got->entries) all += e.where + "=" + e.value + ";";
  EXPECT_EQ(all, "flag --train-tie-all=true;flag --steps=1;flag --no-tie-all=false;flag --steps=2;flag --text=;flag --tie-all=x;");
}

TEST(flags, switches_take_no_value_and_are_kept_apart) {
  const std::vector<std::string> switches = {"help", "version"};
  const auto got = config::read_flags(std::vector<std::string>{"--version", "--steps", "3"}, fields, switches);
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ(got->switches, std::vector<std::string>{"version"});
  EXPECT_EQ(got->entries.size(), 1u);
  EXPECT_EQ(config::read_flags(std::vector<std::string>{"--help=1"}, fields, switches).error().line(),
            "flag --help: takes no value (fix: give --help alone)");
}

TEST(flags, odd_words_are_refused_and_dashes_may_be_attached) {
  EXPECT_EQ(read({"--text=--steps"})->entries[0].value, "--steps");
  for (const char* odd : {"--=1", "--!", "++", "-", "[a]", "{}", "/steps"}) EXPECT_FALSE(read({odd}).ok()) << odd;
  EXPECT_EQ(read({"--steps", "1", "2"}).error().line(), "'2' is not a flag (fix: flags begin with two dashes, e.g. --steps 100)");
  EXPECT_EQ(read({"--text", "[a,b]", "--text", "{}"})->entries.size(), 2u);
}

TEST(flags, help_lists_flags_kinds_defaults_and_meanings_in_groups) {
  const std::vector<field> described = {{"model.width", field_kind::integer, "64"},
                                        {"data.text", field_kind::text, "\"a\""},
                                        {"data.tie_all", field_kind::boolean, "false"},
                                        {"size", field_kind::text, "\"\""}};
  const std::vector<std::string> switches = {"help"};
  const std::string help = config::flag_help(
      described, switches, {"prog", "What it does.", "The end.", {{"model.width", "channels"}, {"help", "this text"}}, {"data.text"}});
  for (const char* part : {"What it does.\nUsage: prog", "\n[model]:\n  --width N=64 ", " channels\n", "\n[data]:\n  --data-text TEXT=a",
                           "\n  --tie-all  ", "\n  --size TEXT", "\n  --help ", " this text\n", "\nThe end.\n"})
    EXPECT_NE(help.find(part), std::string::npos) << part << " in\n" << help;
  EXPECT_EQ(help.find("\n\n\n"), std::string::npos) << help;
}

TEST(flags, names_are_made_from_keys) {
  EXPECT_EQ(config::flag_of("train.tie_all"), "--train-tie-all");
  EXPECT_EQ(config::variable_of("train.tie_all"), "ISOTOPE_TRAIN_TIE_ALL");
}

}  // namespace flags_test
}  // namespace isotope
