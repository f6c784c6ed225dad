// expect: error<.*"too_many_elements.cpp:9 .*w.*has more than 2.40 elements
// A tensor has at most 2^40 elements: sizes that wrap around 64 bits are refused where they are written.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct huge {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    return mean(s.param("w", {3000000000, 3000000000}));
  }
};
template struct iso::training<huge, iso::target<iso::backend::cpu, iso::precision::f32>>;
