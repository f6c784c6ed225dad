// Failures are values with a named code, a line to print and a fix.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace error_test {
using namespace isotope;

constexpr int codes = int(errc::stale_handle) + 1;

TEST(errc, every_code_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (int c = 0; c < codes; ++c) {
    const auto name = name_of(errc(c));
    EXPECT_NE(name, "unknown error") << c;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(name_of(errc(codes)), "unknown error") << "a code was added after the last one that this test knows";
}

TEST(failure, line_says_where_what_and_how_to_fix_it) {
  EXPECT_EQ(isotope::diagnosed(errc::not_found, "no file").line(), "no file");
  EXPECT_EQ((isotope::failure{errc::not_found, "no file", "a.txt:3", {}}).line(), "a.txt:3: no file");
  EXPECT_EQ(fail(errc::not_found, "no file", "a.txt:3", "check the path").line(), "a.txt:3: no file (fix: check the path)");
}

TEST(result, holds_a_value_or_a_failure) {
  const result<int> good = 7;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 7);
  const result<int> bad = fail(errc::truncated, "half a file", "a.txt", "copy it again");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, errc::truncated);
  EXPECT_TRUE(result<void>{});
  EXPECT_FALSE(result<void>{fail(errc::truncated, "half a file", "a.txt", "copy it again")});
}

using here = target<backend::cpu, precision::f32, kernels::reference>;

TEST(failure, failures_of_a_plan_name_the_way_out_in_their_one_line) {
  const auto plan = plan_training<here>(model::mlp_loss_of{{.inputs = 64, .hidden = 512}, 8}, {}, 1 << 20);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, errc::over_budget);
  EXPECT_NE(plan.error().line().find("lower the batch"), std::string::npos) << plan.error().line();
  const auto model = plan_training<here>(model::gpt_loss_of{{.width = 770}, 1, 8});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, errc::invalid_model);
  EXPECT_NE(model.error().line().find("width 770 is not a multiple of heads 12: choose 768"), std::string::npos) << model.error().line();
}
}  // namespace error_test
