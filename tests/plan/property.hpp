#pragma once
/// Property tests: RapidCheck with a fixed seed, whose report becomes the message of a GoogleTest failure.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <sstream>

namespace plan_test {

/// Runs `property` on `cases` generated arguments of growing size; a failure prints the seed and the shrunk counterexample.
template <class Property> void check_property(std::uint64_t seed, int cases, int size, Property property) {
  rc::detail::TestParams params;
  params.seed = seed;
  params.maxSuccess = cases;
  params.maxSize = size;
  const auto result = rc::detail::checkTestable(property, rc::detail::TestMetadata{}, params);
  std::ostringstream report;
  rc::detail::printResultMessage(result, report);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << "seed " << seed << '\n' << report.str();
}

}  // namespace plan_test
