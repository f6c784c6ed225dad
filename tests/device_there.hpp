#pragma once
/// Skips tests, with a reason, if the machine has no device of the backend.
#include <gtest/gtest.h>

#include <isotope/core/error.hpp>
#include <string>

namespace isotope_test {

/// Whether a device could not be opened because the machine lacks something (a driver, a device, one of its features, the validation layer). Any other
/// failure is an error of the library or the test.
inline bool is_missing(const isotope::failure& f) { return f.code == isotope::errc::no_device || f.code == isotope::errc::missing_feature; }

/// Returns the opened device. If it could not be opened, the test ends: as skipped if the machine lacks something, otherwise as failed, with the reason. Call
/// it in bodies and constructors of tests, but not inside properties, where RapidCheck would treat the exception as a counterexample.
template <class T> isotope::result<T> there(isotope::result<T> opened) {
  if (opened) return opened;
  const std::string why = opened.error().line();
  const bool missing = is_missing(opened.error());
  [&] {
    if (missing) GTEST_SKIP() << why;
    FAIL() << why;
  }();
  // GoogleTest ends the test on this exception without a further message; the result is recorded above.
  throw testing::AssertionException(testing::TestPartResult(
      missing ? testing::TestPartResult::kSkip : testing::TestPartResult::kFatalFailure, __FILE__, __LINE__, why.c_str()));
}

}  // namespace isotope_test
