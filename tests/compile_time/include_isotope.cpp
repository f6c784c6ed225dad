// limit: ratio=0.85 megabytes=300
// The compile time of the one header that every program includes.
#include <isotope/isotope.hpp>
