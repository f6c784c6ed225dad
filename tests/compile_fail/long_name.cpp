// expect: error<.*"long_name.cpp:10 parameter".*"name longer than 96".*"characters:".*: shorten".*"a scope
// Names in the state dict have at most 96 characters.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct deep {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    for (int i = 0; i < 12; ++i) s = s / "a_long_scope";
    return mean(s.param("weight", {4, 4}));
  }
};
template struct iso::training<deep, iso::target<iso::backend::cpu, iso::precision::f32>>;
