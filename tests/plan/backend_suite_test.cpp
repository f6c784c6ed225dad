#include "../backend_suite.hpp"
#include "targets.hpp"

// Runs the tests for backends outside the library on every target of the build's backend.
namespace isotope_test {
INSTANTIATE_TYPED_TEST_SUITE_P(library, backend_suite, plan_test::every_target, plan_test::target_name);
}  // namespace isotope_test
