// The backend that the build chose passes the suite of sessions.
#include "backend_suite.hpp"

#include <isotope/selected.hpp>

static_assert(isotope::selected_backend::name == "toy");

namespace isotope_test {
INSTANTIATE_TYPED_TEST_SUITE_P(toy, backend_suite, isotope::selected);
}  // namespace isotope_test
