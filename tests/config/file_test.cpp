#include <gtest/gtest.h>

#include <isotope/config/load.hpp>
#include <string>

#include "config/run_config.hpp"
#include "io/scratch_folder.hpp"

namespace isotope {
namespace file_test {

using test::run_config;

result<config::loaded<run_config>> load(const std::string& name, const std::string& text) {
  auto file = config::parse_file(text, name);
  if (!file) return std::move(file).error();
  return config::merge<run_config>({}, {*std::move(file)});
}

std::string line_of(const std::string& name, const std::string& text) {
  const auto got = load(name, text);
  return got.ok() ? "accepted" : got.error().line();
}

TEST(config_file, toml_sets_fields_of_every_kind) {
  const auto got = load("c.toml", "steps = 1_000\nlearning_rate = 3e-4\nresume = true\nmodel.width = 64\n[data]\ntext = 'a.txt'\n");
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ(got->value.steps, 1000);
  EXPECT_EQ(got->value.learning_rate, 3e-4);
  EXPECT_TRUE(got->value.resume);
  EXPECT_EQ(got->value.model.width, 64);
  EXPECT_EQ(got->value.data.text, "a.txt");
  EXPECT_EQ(got->value.model.layers, 12) << "a partial file leaves the rest";
}

TEST(config_file, json_sets_fields_of_every_kind) {
  const auto got =
      load("c.json", R"({"steps": 1000, "learning_rate": 3e-4, "resume": true, "model": {"width": 64}, "data": {"text": "a.txt"}})");
  ASSERT_TRUE(got.ok()) << got.error().line();
  EXPECT_EQ(got->value.steps, 1000);
  EXPECT_EQ(got->value.learning_rate, 3e-4);
  EXPECT_TRUE(got->value.resume);
  EXPECT_EQ(got->value.model.width, 64);
  EXPECT_EQ(got->value.data.text, "a.txt");
}

TEST(config_file, a_whole_number_is_a_number) { EXPECT_EQ(load("c.toml", "learning_rate = 1\n")->value.learning_rate, 1); }

TEST(config_file, wrong_types_name_file_line_and_key) {
  EXPECT_EQ(line_of("c.toml", "\n[model]\n\nwidth = '64'\n"),
            "c.toml:4: model.width: \"64\" is not a whole number (fix: give a whole number)");
  EXPECT_EQ(line_of("c.toml", "[model]\nwidth = 64.0\n"), "c.toml:2: model.width: '64.0' is not a whole number (fix: give a whole number)");
  EXPECT_EQ(line_of("c.toml", "resume = 1\n"), "c.toml:1: resume: '1' is not true or false (fix: give true or false)");
  EXPECT_EQ(line_of("c.toml", "steps = [1, 2]\n"), "c.toml:1: not TOML: an array: no field is one (fix: correct the line)");
  EXPECT_EQ(line_of("c.toml", "steps = 1979-05-27\n"), "c.toml:1: not TOML: a date or time: no field is one (fix: correct the line)");
  EXPECT_EQ(line_of("c.toml", "[data]\ntext = 7\n"), "c.toml:2: data.text: '7' is not text (fix: give text)");
  EXPECT_EQ(line_of("c.toml", "learning_rate = inf\n"), "c.toml:1: learning_rate: 'inf' is not a number (fix: give a number)");
  EXPECT_EQ(line_of("c.json", "{\"model\":\n{\"width\": null}}"),
            "c.json:2: model.width: 'null' is not a whole number (fix: give a whole number)");
  EXPECT_EQ(line_of("c.json", "{\"data\": {\"text\": true}}"), "c.json:1: data.text: 'true' is not text (fix: give text)");
}

TEST(config_file, unknown_keys_get_file_line_and_suggestion) {
  EXPECT_EQ(line_of("c.toml", "[model]\nwidht = 64\n"), "c.toml:2: unknown key 'model.widht' (fix: did you mean 'model.width'?)");
  EXPECT_EQ(line_of("c.toml", "width = 64\n"), "c.toml:1: unknown key 'width' (fix: did you mean 'model.width'?)");
  EXPECT_EQ(line_of("c.toml", "zzzzzz = 64\n"), "c.toml:1: unknown key 'zzzzzz' (fix: --print-config lists the keys)");
  EXPECT_EQ(line_of("c.json", "{\"steps\": 1,\n\"sed\": 64}"), "c.json:2: unknown key 'sed' (fix: did you mean 'seed'?)");
}

TEST(config_file, a_group_is_not_a_value) {
  EXPECT_EQ(line_of("c.toml", "model = 64\n"), "c.toml:1: 'model' is a group of fields, not a value (fix: write a table)");
}

TEST(config_file, syntax_errors_name_the_line) {
  EXPECT_EQ(line_of("c.toml", "steps = 1\nseed =\n").substr(0, 19), "c.toml:2: not TOML:");
  EXPECT_EQ(line_of("c.toml", "steps = 1\nsteps = 2\n").substr(0, 19), "c.toml:2: not TOML:");
  EXPECT_EQ(line_of("c.json", "{\"steps\": 1,\n}").substr(0, 19), "c.json:2: not JSON:");
  EXPECT_EQ(load("c.json", "[]").error().code, errc::bad_format);
}

TEST(config_file, other_extensions_and_huge_files_are_refused) {
  const scratch_folder folder;
  EXPECT_EQ(config::read_layer(folder.put("c.yaml", "steps: 1")).error().code, errc::invalid_argument);
  EXPECT_EQ(config::read_layer(folder.at("absent.yaml")).error().code, errc::invalid_argument);
  EXPECT_EQ(load("c.toml", "# " + std::string(70'000, 'x')).error().code, errc::invalid_argument);
}

TEST(config_file, a_missing_file_is_not_found) {
  const scratch_folder folder;
  EXPECT_EQ(config::read_layer(folder.at("absent.toml")).error().code, errc::not_found);
  EXPECT_EQ(config::read_layer(folder.at("absent.json")).error().code, errc::not_found);
}

}  // namespace file_test
}  // namespace isotope
