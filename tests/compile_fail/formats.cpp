// expect: error<.*"formats.cpp:9 add: operands".*"have different formats; cast".*"one: \[4\] vs \[4\]"
// An op does not mix floating-point numbers and token ids; the message asks for a cast.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct mixed {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    return mean(s.param("w", {4}) + s.input("ids", {4}, iso::dtype::i32));
  }
};
template struct iso::training<mixed, iso::target<iso::backend::cpu, iso::precision::f32>>;
