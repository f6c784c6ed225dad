#pragma once
/// A scope: a position in a model, which gives parameters their names.
#include <cstdint>
#include <string_view>

#include "tensor.hpp"

namespace isotope {

namespace nn {
struct lora;
}

/// A path in the model and the machine that evaluates it. `s / "h" / 3` names parameters such as `h.3.attn.c_attn.weight`.
template <Machine M> struct scope {
  M* machine = nullptr;
  name path;
  const nn::lora* adapters = nullptr;  // beside the linear layers below this path: nn/lora.hpp
  bool frozen = false;                 // parameters below this path are not trained, whatever their options say

  constexpr scope operator/(std::string_view part) const {
    scope r = *this;
    if (!r.path.empty()) r.path << '.';
    r.path << part;
    return r;
  }
  constexpr scope operator/(std::int64_t index) const {
    scope r = *this;
    if (!r.path.empty()) r.path << '.';
    r.path << index;
    return r;
  }
  /// A parameter of the program's precision. A path that was used before gives the same tensor, so tied parameters are stored once.
  constexpr tensor<M> param(std::string_view leaf, const shape& s, param_options o = {}, place at = place::current()) const {
    if (frozen) o.trainable = false;
    return {machine, machine->param((*this / leaf).path, s, o, at)};
  }
  constexpr tensor<M> param(std::string_view leaf, const shape& s, initializer i, place at = place::current()) const {
    return param(leaf, s, param_options{.init = i}, at);
  }
  /// An input that the caller fills before each step. Axes may be late (`scalar_dim`): the elements that there are come first, dense.
  constexpr tensor<M> input(std::string_view label, const shape& s, dtype t, place at = place::current()) const {
    return {machine, machine->input(name(label), s, t, at)};
  }
  /// A state, which the model keeps from run to run, such as a KV cache. It is zero until it is assigned to. No gradient passes through it.
  /// Axes may be late: elements stay in place when sizes change, and those beyond the actual size keep their values.
  constexpr tensor<M> state(std::string_view leaf, const shape& s, dtype t, place at = place::current()) const requires HoldsState<M> {
    return {machine, machine->state((*this / leaf).path, s, t, at)};
  }
  constexpr tensor<M> state(std::string_view leaf, const shape& s, place at = place::current()) const requires HoldsState<M> {
    return state(leaf, s, machine->program(), at);
  }
  /// An input of the program's precision.
  constexpr tensor<M> input(std::string_view label, const shape& s, place at = place::current()) const {
    return input(label, s, machine->program(), at);
  }
};

}  // namespace isotope
