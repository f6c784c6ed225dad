#pragma once
/// The handle that model code passes around, and how an op is applied to handles.
#include <cstdint>
#include <initializer_list>
#include <span>

#include "machine.hpp"

namespace isotope {

/// A tensor of a machine. Cheap to copy; after an error in the trace its id is -1 and every op passes the error on.
template <class M> struct tensor {
  M* machine = nullptr;
  std::int32_t id = -1;

  constexpr bool valid() const { return id >= 0; }
  constexpr shape dims() const { return valid() ? machine->describe(id).dims : shape{}; }
  constexpr dtype type() const { return valid() ? machine->describe(id).type : dtype::f32; }
  constexpr int rank() const { return dims().rank; }
  constexpr std::int64_t cols() const { return dims().cols(); }
  constexpr std::int64_t operator[](int axis) const { return valid() ? dims()[axis] : 1; }

  /// An operand of an operator and its source location. Operators cannot have a default argument for it, but this conversion can.
  struct located {
    tensor t;
    place at;
    constexpr located(tensor x, place w = place::current()) : t(x), at(w) {}
  };
  friend constexpr tensor operator+(located a, tensor b) { return add(a.t, b, a.at); }
  friend constexpr tensor operator-(located a, tensor b) { return sub(a.t, b, a.at); }
  friend constexpr tensor operator*(located a, tensor b) { return mul(a.t, b, a.at); }
  friend constexpr tensor operator/(located a, tensor b) { return div(a.t, b, a.at); }
  friend constexpr tensor operator*(located a, double k) { return scale(a.t, k, a.at); }
  friend constexpr tensor operator*(double k, located a) { return scale(a.t, k, a.at); }
  friend constexpr tensor operator/(located a, double k) { return scale(a.t, 1.0 / k, a.at); }
  friend constexpr tensor operator+(located a, double k) { return shift(a.t, k, a.at); }
  friend constexpr tensor operator-(located a, double k) { return shift(a.t, -k, a.at); }
  friend constexpr tensor operator-(located a) { return scale(a.t, -1.0, a.at); }
};

/// Applies Op to tensors of one machine. `apply_op` returns all outputs, `apply` the first one.
template <class Op, class M> constexpr applied apply_op(M* m, std::initializer_list<std::int32_t> in, const attributes& a, place at) {
  for (auto v : in)
    if (v < 0) return {};
  return m->apply(rules<Op>, std::span<const std::int32_t>(in.begin(), in.size()), a, at);
}
template <class Op, class M, class... Rest> constexpr tensor<M> apply(place at, const attributes& a, tensor<M> first, Rest... rest) {
  return {first.machine, apply_op<Op>(first.machine, {first.id, rest.id...}, a, at).out[0]};
}

}  // namespace isotope
