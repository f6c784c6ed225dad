// expect: error<.*"too_many_elements.cpp:9 .*w.*has more than 2.40 elements
// A tensor of more than 2^40 elements is refused at its declaration, even if its size overflows 64 bits.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct huge {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    return mean(s.param("w", {3000000000, 3000000000}));
  }
};
template struct iso::training<huge, iso::target<iso::backend::cpu, iso::precision::f32>>;
