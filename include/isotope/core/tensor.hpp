#pragma once
/// The handles that model code passes around: `tensor`, and `scope`, which names parameters.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "graph.hpp"

namespace isotope {

/// What an op application gives back: the ids of its outputs.
struct applied {
  std::array<std::int32_t, max_outputs> out{-1, -1, -1, -1, -1, -1};
};
struct param_options {
  initializer init = init::zeros;
  int decay = -1;         // 1, 0, or -1: matrices decay, vectors do not (the GPT-2 rule)
  bool trainable = true;  // false: no gradient, no optimiser state
  double rate_scale = 1;  // factor on the learning rate
  /// 1, 0, or -1: where the optimiser is Muon, it takes matrices that only products read, each with a product by another weight to come, and
  /// leaves embeddings, the output layer and vectors to AdamW. 1 needs two axes.
  int muon = -1;
};

/// A Machine evaluates model code: it records (`graph_machine`) or runs (`eager`) each op. Values are ids that it hands out.
template <class M>
concept HasTarget = requires { typename M::target; };
template <class M>
concept AppliesOps = requires(M& m, const op_info& op, std::span<const std::int32_t> in, const attributes& a, place at) {
  { m.apply(op, in, a, at) } -> std::same_as<applied>;
};
template <class M>
concept DeclaresParams = requires(M& m, const name& n, const shape& s, const param_options& o, place at) {
  { m.param(n, s, o, at) } -> std::same_as<std::int32_t>;
};
template <class M>
concept DeclaresInputs = requires(M& m, const name& n, const shape& s, dtype t, place at) {
  { m.input(n, s, t, at) } -> std::same_as<std::int32_t>;
};
template <class M>
concept DescribesValues = requires(const M& m, std::int32_t id) {
  { m.describe(id) } -> std::same_as<const value&>;
  { m.program() } -> std::same_as<dtype>;
};
template <class M>
concept Machine = HasTarget<M> && AppliesOps<M> && DeclaresParams<M> && DeclaresInputs<M> && DescribesValues<M>;

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

  /// Operators cannot have default arguments; a converting parameter that remembers the place can.
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

/// Applies Op to tensors of one machine; outputs by `applied`, or the first of them.
template <class Op, class M> constexpr applied apply_op(M* m, std::initializer_list<std::int32_t> in, const attributes& a, place at) {
  for (auto v : in)
    if (v < 0) return {};
  return m->apply(info<Op>, std::span<const std::int32_t>(in.begin(), in.size()), a, at);
}
template <class Op, class M, class... Rest> constexpr tensor<M> apply(place at, const attributes& a, tensor<M> first, Rest... rest) {
  return {first.machine, apply_op<Op>(first.machine, {first.id, rest.id...}, a, at).out[0]};
}

/// A place in the model: a path and a machine. `s / "h" / 3` names parameters such as `h.3.attn.c_attn.weight`.
template <Machine M> struct scope {
  M* machine = nullptr;
  name path;

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
  /// A parameter of the program's precision. The same path again gives the same tensor: tied parameters are stored once.
  constexpr tensor<M> param(std::string_view leaf, const shape& s, param_options o = {}, place at = place::current()) const {
    return {machine, machine->param((*this / leaf).path, s, o, at)};
  }
  constexpr tensor<M> param(std::string_view leaf, const shape& s, initializer i, place at = place::current()) const {
    return param(leaf, s, param_options{.init = i}, at);
  }
  /// An input that the caller fills before each step.
  constexpr tensor<M> input(std::string_view label, const shape& s, dtype t, place at = place::current()) const {
    return {machine, machine->input(name(label), s, t, at)};
  }
  /// An input of the program's precision.
  constexpr tensor<M> input(std::string_view label, const shape& s, place at = place::current()) const {
    return input(label, s, machine->program(), at);
  }
};

}  // namespace isotope
