#include <gtest/gtest.h>

#include <isotope/config/load.hpp>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "io/scratch_folder.hpp"

namespace isotope {
namespace load_test {

using config::rules, config::sources;
using test::run_config;

const std::vector<config::named_size<run_config>> sizes = {
    {"tiny", {.model = {.layers = 2, .heads = 2, .width = 64, .dropout = 0}}},
    {"large-one", {.model = {.layers = 48, .heads = 25, .width = 1600, .dropout = 0.1}}}};

result<config::loaded<run_config>> load(const sources& given, const rules& rule = {}) {
  return config::load<run_config>(given, sizes, rule);
}

/// Loads a configuration that must be refused, and returns the failure.
failure refused(const sources& given, const rules& rule = {}) {
  const auto got = load(given, rule);
  EXPECT_FALSE(got.ok());
  return got.ok() ? failure{} : got.error();
}

std::string origin(const config::loaded<run_config>& from, const std::string& key) {
  for (const auto& s : from.settings)
    if (s.key == key) return s.origin;
  return "no such key";
}

TEST(load, without_any_layer_the_initialisers_stand) {
  const auto got = load({});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->value.model.width, 768);
  EXPECT_EQ(got->settings.size(), 11u);
  for (const auto& s : got->settings) EXPECT_EQ(s.origin, "default") << s.key;
}

/// Sets model.layers in each configuration layer whose bit is set in the mask: to 2 by the size, 3 by the file, 4 by a variable, 5 by a flag.
sources with_layers(unsigned mask, const scratch_folder& folder) {
  sources s;
  if ((mask & 1) != 0) s.arguments = {"--size", "tiny"};
  if ((mask & 2) != 0) s.file = folder.put("c.toml", "[model]\nlayers = 3\n");
  if ((mask & 4) != 0) s.variables["ISOTOPE_MODEL_LAYERS"] = "4";
  if ((mask & 8) != 0) s.arguments.insert(s.arguments.end(), {"--model-layers", "5"});
  return s;
}

TEST(load, the_strongest_layer_of_every_combination_wins_and_is_named) {
  for (unsigned mask = 0; mask < 16; ++mask) {
    const scratch_folder folder;
    const auto got = load(with_layers(mask, folder));
    ASSERT_TRUE(got.ok()) << got.error().line();
    const int expected = mask >= 8 ? 5 : mask >= 4 ? 4 : mask >= 2 ? 3 : mask == 1 ? 2 : 12;
    const std::string name = mask >= 8   ? "flag --model-layers"
                             : mask >= 4 ? "variable ISOTOPE_MODEL_LAYERS"
                             : mask >= 2 ? folder.at("c.toml") + ":2"
                             : mask == 1 ? "size tiny"
                                         : "default";
    EXPECT_EQ(got->value.model.layers, expected) << mask;
    EXPECT_EQ(origin(*got, "model.layers"), name) << mask;
    EXPECT_EQ(got->value.model.width, (mask & 1) != 0 ? 64 : 768) << "the other fields keep their layer";
  }
}

TEST(load, the_size_itself_may_come_from_every_layer) {
  const scratch_folder folder;
  const std::string file = folder.put("c.toml", "size = \"tiny\"\n");
  EXPECT_EQ(load({.file = file, .variables = {}, .arguments = {}})->value.model.layers, 2);
  EXPECT_EQ(load({.file = file, .variables = {{"ISOTOPE_SIZE", "large-one"}}, .arguments = {}})->value.model.layers, 48);
  EXPECT_EQ(load({.file = file, .variables = {{"ISOTOPE_SIZE", "large-one"}}, .arguments = {"--size=tiny"}})->value.model.layers, 2);
  EXPECT_EQ(load({}, {.default_size = "tiny", .required = {}, .switches = {}, .known_variables = {}})->size, "tiny");
}

TEST(load, an_unknown_size_lists_the_sizes_and_suggests_one) {
  const failure f = refused({.file = {}, .variables = {}, .arguments = {"--size", "larg-one"}});
  EXPECT_EQ(f.code, errc::unknown_key);
  EXPECT_EQ(f.line(), "flag --size: no size is named 'larg-one' (fix: did you mean 'large-one'? the sizes are tiny, large-one)");
}

TEST(load, the_file_may_be_named_by_flag_or_variable) {
  const scratch_folder folder;
  const std::string one = folder.put("1.toml", "steps = 1\n"), two = folder.put("2.json", "{\"steps\": 2}");
  EXPECT_EQ(load({.file = {}, .variables = {{"ISOTOPE_CONFIG", one}}, .arguments = {}})->value.steps, 1);
  EXPECT_EQ(load({.file = {}, .variables = {{"ISOTOPE_CONFIG", one}}, .arguments = {"--config", two}})->value.steps, 2);
}

TEST(load, a_required_field_that_only_its_initialiser_sets_is_missing) {
  const rules needs = {.default_size = {}, .required = {"data.text"}, .switches = {}, .known_variables = {}};
  const failure f = refused({}, needs);
  EXPECT_EQ(f.code, errc::missing_value);
  EXPECT_NE(f.line().find("data.text"), std::string::npos);
  EXPECT_NE(f.line().find("--data-text"), std::string::npos);
  EXPECT_TRUE(load({.file = {}, .variables = {}, .arguments = {"--text", "x"}}, needs).ok());
}

TEST(load, every_kind_of_field_is_read_from_flags_and_variables) {
  const auto got =
      load({.file = {},
            .variables = {{"ISOTOPE_LEARNING_RATE", "3e-4"}, {"ISOTOPE_TIED", "false"}, {"ISOTOPE_DATA_CHANNELS", "255"}, {"HOME", "x"}},
            .arguments = {"--seed", "18446744073709551615", "--resume", "--data-text", "a b", "--model-dropout=.5"}});
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ(got->value.learning_rate, 3e-4);
  EXPECT_FALSE(got->value.tied);
  EXPECT_EQ(got->value.data.channels, 255);
  EXPECT_EQ(got->value.seed, 18446744073709551615u);
  EXPECT_TRUE(got->value.resume);
  EXPECT_EQ(got->value.data.text, "a b");
  EXPECT_EQ(got->value.model.dropout, 0.5);
}

TEST(load, a_wrong_value_names_layer_key_and_text) {
  const failure by_flag = refused({.file = {}, .variables = {}, .arguments = {"--steps", "many"}});
  EXPECT_EQ(by_flag.code, errc::bad_format);
  EXPECT_EQ(by_flag.line(), "flag --steps: steps: 'many' is not a whole number (fix: give a whole number)");
  const failure by_variable = refused({.file = {}, .variables = {{"ISOTOPE_RESUME", "yes"}}, .arguments = {}});
  EXPECT_EQ(by_variable.line(), "variable ISOTOPE_RESUME: resume: 'yes' is not true or false (fix: give true or false)");
}

TEST(load, numbers_must_be_whole_finite_and_in_range) {
  for (const char* bad : {"1.5", "1e3", "", " 1", "1 ", "0x10", "--1", "+1"})
    EXPECT_EQ(refused({.file = {}, .variables = {{"ISOTOPE_STEPS", bad}}, .arguments = {}}).code, errc::bad_format) << bad;
  for (const char* bad : {"nan", "inf", "-inf", "1,5", "x", ""})
    EXPECT_EQ(refused({.file = {}, .variables = {{"ISOTOPE_LEARNING_RATE", bad}}, .arguments = {}}).code, errc::bad_format) << bad;
  const failure range = refused({.file = {}, .variables = {{"ISOTOPE_DATA_CHANNELS", "256"}}, .arguments = {}});
  EXPECT_EQ(range.code, errc::invalid_argument);
  EXPECT_NE(range.what.find("256 is outside the range 0 to 255"), std::string::npos) << range.line();
  EXPECT_EQ(refused({.file = {}, .variables = {{"ISOTOPE_SEED", "-1"}}, .arguments = {}}).code, errc::bad_format);
  EXPECT_EQ(refused({.file = {}, .variables = {{"ISOTOPE_MODEL_WIDTH", "2147483648"}}, .arguments = {}}).code, errc::invalid_argument);
}

TEST(load, an_unknown_variable_is_refused_with_a_suggestion_unless_something_else_reads_it) {
  const sources misspelt = {.file = {}, .variables = {{"ISOTOPE_MODEL_WIDTHH", "1"}}, .arguments = {}};
  const failure f = refused(misspelt);
  EXPECT_EQ(f.code, errc::unknown_key);
  EXPECT_NE(f.line().find("did you mean 'ISOTOPE_MODEL_WIDTH'?"), std::string::npos) << f.line();
  EXPECT_TRUE(load(misspelt, {.default_size = {}, .required = {}, .switches = {}, .known_variables = {"ISOTOPE_MODEL_WIDTHH"}}).ok());
}

TEST(load, a_suggestion_may_be_a_short_name) {
  const failure f = refused({.file = {}, .variables = {{"ISOTOPE_CHANNLES", "1"}}, .arguments = {}});
  EXPECT_NE(f.line().find("did you mean 'ISOTOPE_CHANNELS'?"), std::string::npos) << f.line();
}

TEST(load, an_alias_comes_before_what_its_name_spells) {
  rules with = {.default_size = {}, .required = {}, .switches = {}, .known_variables = {}};
  with.aliases = {{"ISOTOPE_STEPS", "data.channels"}, {"ISOTOPE_SHADES", "data.channels"}};
  const auto got = load({.file = {}, .variables = {{"ISOTOPE_STEPS", "7"}}, .arguments = {"--steps", "3"}}, with);
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ(got->value.data.channels, 7);
  EXPECT_EQ(got->value.steps, 3) << "flags have no aliases";
  EXPECT_EQ(origin(*got, "data.channels"), "variable ISOTOPE_STEPS");
  EXPECT_EQ(load({.file = {}, .variables = {{"ISOTOPE_SHADES", "8"}}, .arguments = {}}, with)->value.data.channels, 8);
  EXPECT_NE(refused({.file = {}, .variables = {{"ISOTOPE_SHADE", "8"}}, .arguments = {}}, with).line().find("'ISOTOPE_SHADES'"),
            std::string::npos);
}

TEST(load, a_variable_that_others_read_too_still_sets_a_field_of_its_name) {
  const rules with = {.default_size = {}, .required = {}, .switches = {}, .known_variables = {"ISOTOPE_STEPS", "ISOTOPE_TOP_K"}};
  const auto got = load({.file = {}, .variables = {{"ISOTOPE_STEPS", "7"}, {"ISOTOPE_TOP_K", "x"}}, .arguments = {}}, with);
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ(got->value.steps, 7);
}

TEST(load, one_and_zero_are_booleans_in_variables_and_nowhere_else) {
  EXPECT_TRUE(load({.file = {}, .variables = {{"ISOTOPE_RESUME", "1"}}, .arguments = {}})->value.resume);
  EXPECT_FALSE(load({.file = {}, .variables = {{"ISOTOPE_TIED", "0"}}, .arguments = {}})->value.tied);
  EXPECT_EQ(refused({.file = {}, .variables = {{"ISOTOPE_RESUME", "2"}}, .arguments = {}}).code, errc::bad_format);
  const scratch_folder folder;
  EXPECT_EQ(refused({.file = folder.put("c.toml", "resume = 1\n"), .variables = {}, .arguments = {}}).code, errc::bad_format);
}

TEST(load, switches_are_reported_and_take_no_value) {
  const rules with = {.default_size = {}, .required = {}, .switches = {"help", "print-config"}, .known_variables = {}};
  const auto got = load({.file = {}, .variables = {}, .arguments = {"--print-config", "--steps", "3"}}, with);
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_TRUE(got->has_switch("print-config"));
  EXPECT_FALSE(got->has_switch("help"));
  EXPECT_EQ(refused({.file = {}, .variables = {}, .arguments = {"--help=x"}}, with).code, errc::invalid_argument);
}

}  // namespace load_test
}  // namespace isotope
