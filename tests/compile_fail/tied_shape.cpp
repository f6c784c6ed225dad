// expect: error<.*"tied_shape.cpp:10 parameter".*bert.encoder.layer.11.".*"attention.output.LayerNorm.".*"weight.* is tied with another".*"shape: \[768\] vs \[512\] in"
// A path that is used again must have the same shape. The longest path of BERT is printed in full.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct tied {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto norm = s / "bert.encoder.layer" / 11 / "attention.output.LayerNorm";
    return mean(norm.param("weight", {768})) + mean(norm.param("weight", {512}));
  }
};
template struct iso::training<tied, iso::target<iso::backend::cpu, iso::precision::f32>>;
