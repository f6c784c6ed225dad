#pragma once
/// Random models for property tests of the planner: a list of (op, operands) over tensors of one shape.
#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace plan_test {

/// One line of a random model. Operands are counted back from the newest tensor; `choice` selects a parameter or a variant of the op.
struct random_line {
  int op = 0, a = 0, b = 0, choice = 0;
  friend std::ostream& operator<<(std::ostream& out, const random_line& l) {
    return out << '{' << l.op << ',' << l.a << ',' << l.b << ',' << l.choice << '}';
  }
};
inline constexpr int random_ops = 43;

/// A loss of x (R, C) and of parameters that several lines may share. Every line takes and gives tensors (R, C), so any line fits any operands.
/// Within a line there are other shapes, views, broadcasts along every axis, casts, ties, blocks and random numbers.
struct random_model {
  static constexpr int R = 6, C = 8, V = 5;
  std::vector<random_line> lines;

  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    std::vector<tensor<M>> pool{s.input("x", {R, C}), s.param("start", {R, C}, init::normal(0.5))};
    for (const auto& l : lines) {
      const auto a = pool[pool.size() - 1 - std::size_t(l.a) % pool.size()], b = pool[pool.size() - 1 - std::size_t(l.b) % pool.size()];
      pool.push_back(line(s, l, a, b));
    }
    const auto targets = s.input("targets", {R}, dtype::i32);
    const auto last = pool.back(), other = pool[pool.size() / 2];
    return cross_entropy(last, targets) + cast(mean(square(other)), accum_of(s.machine->program()));
  }

 private:
  template <isotope::Machine M>
  static isotope::tensor<M> line(isotope::scope<M> s, const random_line& l, isotope::tensor<M> a, isotope::tensor<M> b) {
    using namespace isotope;
    const auto w = [&](int k) { return (s / "w" / (k % 3)).param("weight", {C, C}, init::normal(0.3)); };
    const auto bias = [&] { return (s / "bias" / (l.choice % 3)).param("bias", {C}, init::normal(0.3)); };
    const auto q = [&] { return (s / "q" / (l.choice % 4)).param("weight", {R, C}, init::normal(0.4)); };
    const auto ids = [&] { return s.input("ids", {R}, dtype::i32); };
    switch (l.op % random_ops) {
      case 0: return a + b;
      case 1: return a * tanh(b);
      case 2: return a - b;
      case 3: return gelu(a);
      case 4: return tanh(a);
      case 5: return a * 0.5;
      case 6: return a + bias();
      case 7: return a * s.param("column", {R, 1}, init::ones);  // broadcasts along the last axis
      case 8: return matmul(a, w(l.choice));
      case 9: return matmul(a, transpose(w(l.choice)));
      case 10: return matmul(matmul(a, transpose(b), 0.1), a);
      case 11: return nn::layer_norm(s / "norm" / (l.choice % 2), a);
      case 12: return softmax(a);
      case 13: {
        const auto [left, right] = split<2>(a, -1);
        return concat<M>({right, left}, -1);
      }
      case 14: return reshape(transpose(a), {R, C});  // the memory order requires a copy
      case 15: return concat<M>({narrow(a, 1, 2, C - 2), narrow(b, 1, 0, 2)}, 1);
      case 16: {
        const auto packed = reshape(concat<M>({a, b, a}, 1), {2, R / 2, 3 * C});
        return reshape(
            attention(packed, 2,
                      {.causal = l.choice % 2 == 0, .dropout = l.choice % 3 == 0 ? 0.25 : 0.0, .window = l.choice % 4 == 0 ? 2 : 0}),
            {R, C});
      }
      case 17: return dropout(a, 0.25);
      case 18: return a + sum(b, {1}, true) * 0.1;
      case 19: return a * mean(b, {0});
      case 20: return embedding(a, ids());  // its gradient is scattered into that of an activation
      case 21: return a + embedding((s / "table").param("weight", {V, C}, init::normal(0.3)), ids());
      case 22: return where(less(a, b), b, a);
      case 23:
        return nn::block(s / "mlp" / (l.choice % 2), a,
                         [&](scope<M> h, tensor<M> x) { return x + dropout(nn::mlp(h, nn::layer_norm(h / "ln", x), 2 * C), 0.25); });
      case 24: return a * expand(sum(b * 0.1, {0}, true), {R, C});
      case 25: return matmul(a, w(0) + w(1));  // two parameters share one gradient
      case 26: return silu(a) * sigmoid(b);
      case 27: return q() / shift(square(a), 1.0);  // the gradient of b reads the parameter
      case 28: return embedding(q(), ids());        // its gradient is scattered into that of a parameter that other ops read
      case 29: return embedding(reshape(q(), {R, C}), ids()) + a;
      case 30: {
        const auto [left, right] = split<2>(q(), -1);
        return concat<M>({right, left}, -1) + a;
      }
      case 31: return a - q();
      case 32: return a / shift(square(b), 1.0);
      case 33: return matmul(a, w(l.choice), b, 0.5, 0.25);
      case 34: return transpose(matmul(transpose(w(l.choice)), transpose(a)));
      case 35: return a * narrow(q(), 0, 0, 1);
      case 36: return concat<M>({narrow(a, 0, 1, R - 1), narrow(q(), 0, 0, 1)}, 0);
      case 37: return where(less(a, b), q(), a) * max(b, {1}, true);
      case 38: return rms_norm(a, (s / "rms").param("weight", {C}, init::ones)) - min(b, {0}, true);
      case 39:
        return nn::block(s / "gate" / (l.choice % 2), a, [&](scope<M> h, tensor<M> x) {
          const auto rows = (h / "table").param("weight", {R, C}, init::normal(0.3));
          return tanh(matmul(dropout(x, 0.25), (h / "m").param("weight", {C, C}, init::normal(0.3)))) * x + embedding(rows, ids());
        });
      case 40: return relu(a) + q() * (s / "frozen").param("weight", {C}, {.init = init::normal(1), .trainable = false});
      case 41: {  // its gradient is scattered into that of a parameter that is also divided
        const auto rows = embedding(q(), ids());
        return rows * (q() / shift(square(a), 1.0));
      }
      default: return cast(cast(a, dtype::f32) * cast(exp(tanh(b)), dtype::f32), s.machine->program());
    }
  }
};

/// Generates models of up to `size` lines, which shrink to few lines with small numbers.
inline rc::Gen<random_model> random_models() {
  const auto number = [](int limit) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, limit)); };  // not scaled by size
  const auto line =
      rc::gen::build<random_line>(rc::gen::set(&random_line::op, number(random_ops)), rc::gen::set(&random_line::a, number(6)),
                                  rc::gen::set(&random_line::b, number(6)), rc::gen::set(&random_line::choice, number(6)));
  return rc::gen::map(rc::gen::container<std::vector<random_line>>(line),
                      [](std::vector<random_line> lines) { return random_model{std::move(lines)}; });
}
inline std::ostream& operator<<(std::ostream& out, const random_model& m) {
  for (const auto& l : m.lines) out << l << ' ';
  return out;
}

}  // namespace plan_test
