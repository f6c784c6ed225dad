#include "../backend_suite.hpp"
#include "targets.hpp"

// The suite that a backend outside the library instantiates, on every target of the chosen one.
namespace isotope_test {
INSTANTIATE_TYPED_TEST_SUITE_P(library, backend_suite, plan_test::every_target, plan_test::target_name);
}  // namespace isotope_test
