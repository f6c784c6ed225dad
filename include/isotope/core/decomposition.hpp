#pragma once
/// The interface between the recorder and an op's decomposition into other ops.
#include <cstdint>
#include <span>

#include "tape.hpp"

namespace isotope {

/// The argument of an op's `decompose`. It provides the operands x and the attributes of the op, and takes the outputs by `give`.
class decomposition {
 public:
  constexpr decomposition(tape& t, std::span<const std::int32_t> in, const attributes& a, place where)
      : attr(a), at(where), t_(t), in_(in) {}

  attributes attr;
  place at;

  constexpr tape& machine() const { return t_; }
  constexpr tensor<tape> x(int k) const { return {&t_, in_[std::size_t(k)]}; }
  constexpr void give(int k, tensor<tape> y) { outputs.out[std::size_t(k)] = y.id; }

  applied outputs;

 private:
  tape& t_;
  std::span<const std::int32_t> in_;
};

constexpr applied tape::decomposed(const op_rules& op, std::span<const std::int32_t> in, const attributes& a, place at) {
  const bool outer = in_decomposition_;
  in_decomposition_ = true;
  decomposition d(*this, in, a, at);
  op.decompose(d);
  in_decomposition_ = outer;
  return d.outputs;
}

}  // namespace isotope
