// expect: error<.*"shape.cpp:9 matmul: inner".*"dimensions differ:".*"\[4,1024,3072\] vs \[768,3000\]".*"in h.0.mlp."
// For a wrong width, the message names the line of the model, the scope and both shapes.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct wrong_mlp {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto y = matmul(s.input("x", {4, 1024, 3072}), (s / "h" / 0 / "mlp").param("weight", {768, 3000}));
    return mean(y);
  }
};
template struct iso::training<wrong_mlp, iso::target<iso::backend::cpu, iso::precision::f32>>;
