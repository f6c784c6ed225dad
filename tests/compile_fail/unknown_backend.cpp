// expect: ISOTOPE_BACKEND names no backend of this version; there are: [a-z, ]*cpu
// The choice macros are read by selected.hpp alone.
#undef ISOTOPE_BACKEND
#define ISOTOPE_BACKEND metal
#include <isotope/selected.hpp>
