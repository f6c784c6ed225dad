#include <gtest/gtest.h>
#include <isotope/backend/cpu/processor.hpp>

namespace processor_test {
using namespace isotope;

TEST(processor, runs_what_these_tests_were_compiled_for) { EXPECT_EQ(cpu::features_here().missing(), ""); }
// Code for another set of instructions is in a namespace of another name.
TEST(processor, what_a_compiler_may_use_is_in_the_name) {
  const std::string_view name = ISOTOPE_CPU_ARCH;
#if defined(__AVX512VBMI__)
  EXPECT_TRUE(name.find("icelake") != name.npos || name.find("vbmi") != name.npos) << name;
#endif
#if defined(__AVX512BF16__)
  EXPECT_NE(name.find("bf16"), name.npos) << name;
#endif
#if defined(__AVX512F__)
  EXPECT_TRUE(name.find("v4") != name.npos || name.find("avx512f") != name.npos) << name;
#elif defined(__AVX2__)
  EXPECT_TRUE(name.find("v3") != name.npos || name.find("avx2") != name.npos) << name;
#endif
  EXPECT_FALSE(name.empty());
}
TEST(processor, the_first_missing_feature_is_named) {
  cpu::processor_features f;
  f.push({"avx2", true});
  EXPECT_EQ(f.missing(), "");
  f.push({"avx512f", false});
  f.push({"amx", false});
  EXPECT_EQ(f.missing(), "avx512f");
}
}  // namespace processor_test
