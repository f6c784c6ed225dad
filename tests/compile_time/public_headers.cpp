// limit: seconds=0.6 megabytes=300 flags=-O0
#include <isotope/isotope.hpp>
