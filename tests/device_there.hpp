#pragma once
/// Tests of a device that is not there: skipped with the reason, on every backend.
#include <gtest/gtest.h>

#include <isotope/core/error.hpp>
#include <string>

namespace isotope_test {

/// Whether a failure to open says that the machine lacks something (a driver, a device, a feature of it, the validation layer) and not that the
/// library or the test is wrong.
inline bool is_missing(const isotope::failure& f) { return f.code == isotope::errc::no_device || f.code == isotope::errc::missing_feature; }

/// `opened`, which is there. Ends the test where it could not be: as skipped where the machine lacks something, else as failed, with the reason. For bodies and
/// constructors of tests, not inside properties: RapidCheck would take the end for a counterexample.
template <class T> isotope::result<T> there(isotope::result<T> opened) {
  if (opened) return opened;
  const std::string why = opened.error().line();
  const bool missing = is_missing(opened.error());
  [&] {
    if (missing) GTEST_SKIP() << why;
    FAIL() << why;
  }();
  // GoogleTest ends a test silently on this exception: its part of the result is recorded above.
  throw testing::AssertionException(testing::TestPartResult(
      missing ? testing::TestPartResult::kSkip : testing::TestPartResult::kFatalFailure, __FILE__, __LINE__, why.c_str()));
}

}  // namespace isotope_test
