// expect: too few arguments to function|no matching function for call to 'fail'
#include <isotope/core/error.hpp>

const isotope::failure f = isotope::fail(isotope::errc::not_found, "no such file", "a.txt");
