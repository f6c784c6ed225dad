// expect: ISOTOPE_BACKEND='metal' is no backend: each is a file include/isotope/backend/<name>\.hpp
// selected.hpp refuses a backend that does not exist.
#undef ISOTOPE_BACKEND
#define ISOTOPE_BACKEND metal
#include <isotope/selected.hpp>
