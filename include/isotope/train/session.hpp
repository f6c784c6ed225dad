#pragma once
/// What the training loop requires of a loaded model, for any backend, precision or model.
#include <isotope/core/error.hpp>
#include <isotope/core/step.hpp>
#include <isotope/core/tensor_kind.hpp>
#include <isotope/train/batch.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace isotope::train {

/// `parameters()` is the state dict: one entry per tensor, in the order that `read` and `write` index.
template <class S>
concept HasParameters = requires(const S& s) { s.parameters().size(); };

/// `initialize(seed)` sets every parameter by its initializer and every moment to zero: the same bits for the same seed.
template <class S>
concept CanInitialize = requires(S& s, std::uint64_t seed) { s.initialize(seed); };

/// `step(micro-batches, scalars)` is one optimizer step on the mean gradient of one or more micro-batches; the k-th draws its random numbers with
/// scalars.counter + k. If loss or norm is not finite, nothing is updated and the step is reported as skipped.
template <class S>
concept CanStep = requires(S& s, std::span<const batch> b, const step_scalars& x) {
  { s.step(b, x) } -> std::convertible_to<step_report>;
};

/// Optional members, with which the loop submits steps ahead of the device. `next_input(label)` is memory for an input of the step that `submit(scalars)` starts
/// next; `collect(what submit returned)` waits for the step and returns its report, in the order of submission. `frames` steps can be in flight.
template <class S>
concept SubmitsSteps = requires(S& s, const step_scalars& x) {
  { s.template next_input<std::int32_t>(batch::tokens_label) } -> std::same_as<result<std::span<std::int32_t>>>;
  { s.collect(s.submit(x)) } -> std::convertible_to<step_report>;
  { S::frames } -> std::convertible_to<std::size_t>;
};
/// What `submit` returns; nothing where there is no such member.
template <class S> struct submitted_by {
  struct type {};
};
template <SubmitsSteps S> struct submitted_by<S> {
  using type = decltype(std::declval<S&>().submit(std::declval<const step_scalars&>()));
};

/// `evaluate(batch)` returns the mean loss over the non-negative targets of one batch: forward only, without dropout; nothing changes.
template <class S>
concept CanEvaluate = requires(S& s, const batch& b) {
  { s.evaluate(b) } -> std::convertible_to<double>;
};

/// `read` and `write` copy the logical f32 values of one tensor, so that a checkpoint is independent of any device's layout.
template <class S>
concept CanRead = requires(S& s, std::span<float> out) {
  { s.read(tensor_kind::parameter, std::size_t{}, out) } -> std::same_as<result<void>>;
};
template <class S>
concept CanWrite = requires(S& s, std::span<const float> in) {
  { s.write(tensor_kind::parameter, std::size_t{}, in) } -> std::same_as<result<void>>;
};

/// Optional members, which checkpoints use where present. `read` of many tensors needs fewer copies for small ones; `keeps(kind, slot)` says whether
/// `read` finds a tensor; without it the tensor is read to find out.
template <class S>
concept ReadsTogether = requires(S& s, std::span<const tensor_read> all) {
  { s.read(all) } -> std::same_as<result<void>>;
};
template <class S>
concept KnowsTensors = requires(S& s) {
  { s.keeps(tensor_kind::parameter, std::size_t{}) } -> std::same_as<bool>;
};

/// `states()` is what the model keeps from run to run, by label; `read` and `write` take them as tensor_kind::state.
template <class S>
concept HasStates = requires(const S& s) { s.states().size(); };

/// `algorithms()` is a digest of the algorithms that a library runs for the session, which decide the last bits of results; empty: it runs none. Sessions
/// without such libraries have no such member.
template <class S>
concept ChoosesAlgorithms = requires(const S& s) {
  { s.algorithms() } -> std::convertible_to<std::string>;
};
template <class S> std::string algorithms_of(const S& session) {
  if constexpr (ChoosesAlgorithms<S>) return session.algorithms();
  else return {};
}

/// Bytes that the plan promised, and the arena with the library's counted allocations.
template <class S>
concept CountsBytes = requires(const S& s) {
  { s.planned_bytes() } -> std::convertible_to<std::int64_t>;
  { s.measured_bytes() } -> std::convertible_to<std::int64_t>;
};

/// `status()` returns the first failure of the session's device; after it nothing runs. Sessions that cannot lose their device have no such member.
template <class S>
concept HasStatus = requires(const S& s) {
  { s.status() } -> std::same_as<result<void>>;
};
template <class S> result<void> status_of(const S& session) {
  if constexpr (HasStatus<S>) return session.status();
  else return {};
}

template <class S>
concept TrainingSession =
    HasParameters<S> && CanInitialize<S> && CanStep<S> && CanEvaluate<S> && CanRead<S> && CanWrite<S> && CountsBytes<S>;

static_assert(!TrainingSession<int>);

}  // namespace isotope::train
