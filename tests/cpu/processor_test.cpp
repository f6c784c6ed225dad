#include <gtest/gtest.h>
#include <isotope/backend/cpu/processor.hpp>

namespace processor_test {
using namespace isotope;

TEST(processor, runs_what_these_tests_were_compiled_for) { EXPECT_EQ(cpu::features_here().missing(), ""); }
TEST(processor, the_first_missing_feature_is_named) {
  cpu::processor_features f;
  f.push({"avx2", true});
  EXPECT_EQ(f.missing(), "");
  f.push({"avx512f", false});
  f.push({"amx", false});
  EXPECT_EQ(f.missing(), "avx512f");
}
}  // namespace processor_test
