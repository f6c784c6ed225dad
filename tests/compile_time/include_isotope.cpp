// limit: ratio=0.6 megabytes=300
// What every model author pays.
#include <isotope/isotope.hpp>
