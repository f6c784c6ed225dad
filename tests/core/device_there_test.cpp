/// Tests how tests end if there is no device, with made-up failures.
#include "../device_there.hpp"

#include <gtest/gtest-spi.h>

namespace device_there_test {

struct ending {
  bool ended = false, skipped = false, failed = false;
  std::string text;
};
ending of(const isotope::result<int>& r) {
  ending e;
  testing::TestPartResultArray parts;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD,
                                                             &parts);
    try {
      static_cast<void>(isotope_test::there(r));
    } catch (const testing::AssertionException&) { e.ended = true; }
  }
  for (int i = 0; i < parts.size(); ++i) {
    e.skipped = e.skipped || parts.GetTestPartResult(i).skipped();
    e.failed = e.failed || parts.GetTestPartResult(i).failed();
    e.text += parts.GetTestPartResult(i).message();
  }
  return e;
}

TEST(device_there, a_device_that_is_there_is_handed_on) {
  EXPECT_EQ(*isotope_test::there(isotope::result<int>(7)), 7);
  EXPECT_FALSE(of(7).ended);
}
TEST(device_there, what_the_machine_lacks_skips_a_test_with_the_reason) {
  for (const auto code : {isotope::errc::no_device, isotope::errc::missing_feature}) {
    const auto e = of(isotope::fail(code, "no driver", "gpu", "install one"));
    EXPECT_TRUE(e.ended && e.skipped && !e.failed);
    EXPECT_NE(e.text.find("gpu: no driver (fix: install one)"), std::string::npos) << e.text;
  }
}
TEST(device_there, any_other_failure_fails_a_test) {
  for (const auto code :
       {isotope::errc::device_lost, isotope::errc::invalid_argument, isotope::errc::out_of_memory, isotope::errc::timeout}) {
    const auto e = of(isotope::fail(code, "lost", "toy", "open it again"));
    EXPECT_TRUE(e.ended && e.failed && !e.skipped);
  }
}

}  // namespace device_there_test
