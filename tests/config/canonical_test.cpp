#include <gtest/gtest.h>

#include <isotope/config/canonical.hpp>
#include <isotope/config/table.hpp>
#include <string>
#include <vector>

#include "config/run_config.hpp"

namespace isotope {
namespace canonical_test {

using test::run_config;

const std::string canonical =
    R"({"model":{"layers":12,"heads":12,"width":768,"dropout":0},"data":{"text":"","channels":3},"steps":1000,"seed":1,"learning_rate":0.001,"resume":false,"tied":true})";

TEST(canonical, fields_are_written_in_the_order_of_declaration) { EXPECT_EQ(config::to_json(run_config{}), canonical); }

TEST(canonical, every_field_survives_the_round_trip) {
  run_config c;
  c.model.width = -5;
  c.model.dropout = 0.1 + 0.2;
  c.data.text = "a \"b\"\n\u00e9";
  c.data.channels = 255;
  c.steps = std::numeric_limits<std::int64_t>::min();
  c.seed = std::numeric_limits<std::uint64_t>::max();
  c.learning_rate = 4.9e-324;
  c.resume = true;
  c.tied = false;
  const auto back = config::from_json<run_config>(config::to_json(c), "t");
  ASSERT_TRUE(back.ok()) << back.error().line();
  EXPECT_EQ(config::to_json(*back), config::to_json(c));
  EXPECT_EQ(back->model.dropout, c.model.dropout);
  EXPECT_EQ(back->data.text, c.data.text);
  EXPECT_EQ(back->seed, c.seed);
  EXPECT_EQ(back->learning_rate, c.learning_rate);
}

TEST(canonical, a_missing_an_unknown_and_a_wrong_field_are_refused) {
  EXPECT_EQ(config::from_json<run_config>(R"({"steps":1})", "t").error().code, errc::missing_value);
  std::string text = canonical;
  EXPECT_EQ(config::from_json<run_config>(text.replace(text.find("heads"), 5, "hands"), "t").error().code, errc::unknown_key);
  text = canonical;
  EXPECT_EQ(config::from_json<run_config>(text.replace(text.find("false"), 5, "0"), "t").error().code, errc::bad_format);
}

TEST(table, every_field_stands_with_value_and_layer) {
  const auto got = config::merge<run_config>({}, {{{"data.text", "x", config::written_as::raw, "flag --text"}}});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(config::table(*got),
            "field          value  layer\n"
            "model.layers   12     default\n"
            "model.heads    12     default\n"
            "model.width    768    default\n"
            "model.dropout  0      default\n"
            "data.text      \"x\"    flag --text\n"
            "data.channels  3      default\n"
            "steps          1000   default\n"
            "seed           1      default\n"
            "learning_rate  0.001  default\n"
            "resume         false  default\n"
            "tied           true   default\n");
}

}  // namespace canonical_test
}  // namespace isotope
