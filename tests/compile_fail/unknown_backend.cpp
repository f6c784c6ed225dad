// expect: ISOTOPE_BACKEND='metal' is no backend: each is a file include/isotope/backend/<name>\.hpp
// The choice macros are read by selected.hpp alone.
#undef ISOTOPE_BACKEND
#define ISOTOPE_BACKEND metal
#include <isotope/selected.hpp>
