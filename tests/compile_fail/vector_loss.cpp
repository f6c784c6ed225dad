// expect: error<.*differentiate: the loss must".*"be one floating-point number,".*"not \[4\]: reduce it with mean"
// Only a loss of one element can be differentiated.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct vector_loss {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const { return square(s.param("w", {4})); }
};
template struct iso::training<vector_loss, iso::target<iso::backend::cpu, iso::precision::f32>>;
