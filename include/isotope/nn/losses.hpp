#pragma once
/// Losses that are made of ops. Each is averaged, summed or given element by element.
#include <cstdint>

#include "../op/cast.hpp"
#include "../op/clamp.hpp"
#include "../op/sign.hpp"
#include "../op/softmax.hpp"
#include "../op/statistics.hpp"
#include "../op/take_along.hpp"

namespace isotope::nn {

enum class reduction : std::uint8_t {
  mean,  // of all elements; of class losses: sum / (sum of the weights of the rows that count)
  sum,
  none,  // one loss of each element, or of each row of logits
};

template <Machine M> constexpr tensor<M> reduced(tensor<M> losses, reduction how, place at) {
  return how == reduction::none ? losses : how == reduction::sum ? sum(losses, {}, false, at) : mean(losses, {}, false, at);
}

/// (x - y)^2.
/// @error  shapes do not broadcast
template <Machine M> constexpr tensor<M> mse(tensor<M> x, tensor<M> y, reduction how = reduction::mean, place at = place::current()) {
  return reduced(square(sub(x, y, at), at), how, at);
}
/// d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2), with d = x - y.
/// @error  shapes do not broadcast
/// Source: Huber 1964, section 4; torch.nn.HuberLoss.
template <Machine M>
constexpr tensor<M> huber(tensor<M> x, tensor<M> y, double delta = 1, reduction how = reduction::mean, place at = place::current()) {
  const auto size = abs(sub(x, y, at), at);
  const auto limit = fill(*x.machine, {}, size.type(), delta, at);
  const auto far = scale(shift(size, -delta / 2, at), delta, at);
  return reduced(where(less(limit, size, at), far, scale(square(size, at), 0.5, at), at), how, at);
}
/// -(y log p + (1 - y) log(1 - p)) of probabilities p, with logarithms of at least -100.
/// @error  shapes do not broadcast
/// Source: torch.nn.BCELoss.
template <Machine M>
constexpr tensor<M> binary_cross_entropy(tensor<M> p, tensor<M> y, reduction how = reduction::mean, place at = place::current()) {
  const auto floor_of = [&](tensor<M> x) { return clamp(log(x, at), -100, std::numeric_limits<double>::infinity(), at); };
  const auto other = [&](tensor<M> x) { return shift(neg(x, at), 1, at); };
  return reduced(neg(add(mul(y, floor_of(p), at), mul(other(y), floor_of(other(p)), at), at), at), how, at);
}
/// max(x, 0) - x y + log(1 + exp(-|x|)): the binary cross-entropy of sigmoid(x), which does not overflow.
/// @error  shapes do not broadcast
template <Machine M>
constexpr tensor<M> binary_cross_entropy_with_logits(tensor<M> x, tensor<M> y, reduction how = reduction::mean,
                                                     place at = place::current()) {
  const auto zero = fill(*x.machine, {}, x.type(), 0, at);
  const auto rest = log(shift(exp(neg(abs(x, at), at), at), 1, at), at);
  return reduced(add(sub(maximum(x, zero, at), mul(x, y, at), at), rest, at), how, at);
}
/// q (log q - log_p), 0 where q = 0. `mean` divides by the number of elements; divide a sum by the batch for the divergence itself.
/// @error  shapes do not broadcast
/// Source: torch.nn.KLDivLoss.
template <Machine M>
constexpr tensor<M> kl_divergence(tensor<M> log_p, tensor<M> q, reduction how = reduction::mean, place at = place::current()) {
  const auto zero = fill(*q.machine, {}, q.type(), 0, at), one = fill(*q.machine, {}, q.type(), 1, at);
  const auto some = less(zero, q, at);
  const auto logs = log(where(some, q, one, at), at);
  return reduced(where(some, mul(q, sub(logs, log_p, at), at), zero, at), how, at);
}

/// Options of the losses of classes.
struct class_loss_options {
  reduction how = reduction::mean;
  double smoothing = 0;  // part of the target's probability that is spread evenly over all classes, in [0, 1]
  double z = 0;          // adds z logsumexp(logits)^2 to the loss of a row, which keeps logits small
};

/// The losses of rows of log-probabilities: -w[t] log_p[t], smoothed by the options. Rows whose target is outside [0, V) do not count.
///
/// @param log_p    (..., V)
/// @param targets  (...)   i32
/// @param weights  (V)     of the classes; invalid: all 1
/// @return         ()      for the reductions sum and mean, which is 0 if no row counts; (...) for none, 0 in rows that do not count
/// @error          shapes that do not fit; targets of another format
/// Source: torch.nn.NLLLoss; smoothing: Szegedy et al. 2016, arXiv:1512.00567, section 7, as torch.nn.CrossEntropyLoss weighs it.
template <Machine M>
constexpr tensor<M> nll(tensor<M> log_p, tensor<M> targets, class_loss_options o = {}, tensor<M> weights = {}, tensor<M> extra = {},
                        place at = place::current()) {
  M& m = *log_p.machine;
  const std::int64_t V = log_p[-1];
  const dtype type = log_p.type();
  const auto number = [&](double x) { return fill(m, {}, type, x, at); };
  const auto ids = cast(targets, dtype::f32, at);
  const auto counts =
      logical_and(less(fill(m, {}, dtype::f32, -1, at), ids, at), less(ids, fill(m, {}, dtype::f32, double(V), at), at), at);
  shape column = targets.dims();
  column.push(1);
  const auto of_target = [&](tensor<M> rows) {
    return reshape(take_along(rows, reshape(targets, column, at), -1, at), targets.dims(), at);
  };

  const auto w = weights.valid() ? cast(weights, type, at) : weights;
  auto weight = fill(m, targets.dims(), type, 1, at), loss = neg(of_target(log_p), at);
  if (w.valid()) {
    weight = reshape(embedding(reshape(w, {V, 1}, at), targets, at), targets.dims(), at);
    loss = mul(loss, weight, at);
  }
  if (o.smoothing != 0) {
    const auto spread = neg(sum(w.valid() ? mul(log_p, w, at) : log_p, {-1}, false, at), at);
    loss = add(scale(loss, 1 - o.smoothing, at), scale(spread, o.smoothing / double(V), at), at);
  }
  if (extra.valid()) loss = add(loss, extra, at);
  const auto rows = where(counts, loss, number(0), at);
  if (o.how == reduction::none) return rows;
  const auto total = sum(rows, {}, false, at);
  if (o.how == reduction::sum) return total;
  const auto counted = sum(where(counts, weight, number(0), at), {}, false, at);
  const auto none = equal(counted, number(0), at);
  return where(none, number(0), div(total, where(none, number(1), counted, at), at), at);
}
/// nll(log_softmax(logits)), in f32, with the z loss of the options: cross-entropy with class weights, label smoothing and every reduction. `cross_entropy`
/// without options is the one that never stores probabilities.
/// Parameters and errors as `nll`. Source of the z loss: Chowdhery et al. 2022, arXiv:2204.02311, section 5.
template <Machine M>
constexpr tensor<M> class_loss(tensor<M> logits, tensor<M> targets, class_loss_options o = {}, tensor<M> weights = {},
                               place at = place::current()) {
  const auto x = cast(logits, accum_of(logits.machine->program()), at);
  const auto extra = o.z == 0 ? tensor<M>{} : scale(square(logsumexp(x, {-1}, false, at), at), o.z, at);
  return nll(log_softmax(x, -1, at), targets, o, weights, extra, at);
}

}  // namespace isotope::nn
