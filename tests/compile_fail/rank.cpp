// expect: error<.*"rank.cpp:9 .*x.* has more than".*"6 dimensions:"
// A tensor with more than six axes is refused.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct deep {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    return mean(s.input("x", {1, 2, 3, 4, 5, 6, 7}) * s.param("w", {7}));
  }
};
template struct iso::training<deep, iso::target<iso::backend::cpu, iso::precision::f32>>;
