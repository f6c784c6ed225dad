// The backend of this build must pass the tests for backends.
#include "backend_suite.hpp"

#include <isotope/selected.hpp>

static_assert(isotope::selected_backend::name == "toy");

namespace isotope_test {
INSTANTIATE_TYPED_TEST_SUITE_P(toy, backend_suite, isotope::selected);
}  // namespace isotope_test
