// The consumer's program: what a user's first file looks like.
#include <cstdio>
#include <isotope/core/precision.hpp>
#include <isotope/core/shape.hpp>

int main() {
  std::printf("isotope works\n");
  return 0;
}
