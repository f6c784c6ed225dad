#pragma once
/// A session is a program loaded onto a device of any backend: the plans, and one arena with parameters, gradients, moments, states and activations.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../queue/launch_times.hpp"
#include "counters.hpp"
#include "session_memory.hpp"

namespace isotope {

/// Values for some inputs of a plan. `each_input` calls give(label, span of elements) for each. train/batch.hpp has the batch of token models.
template <class B>
concept Batch = requires(const B& b, bool (*give)(std::string_view, std::span<const std::int32_t>)) { b.each_input(give); };

/// One or more plans over one set of parameters. The first plan runs where no other is named; its report consists of its outputs `loss` and `grad_norm`.
/// A session may be moved while runs are in flight.
template <Queue Q> class session : public session_memory<Q> {
  using memory = session_memory<Q>;

 public:
  using memory::find, memory::plan;
  using target = typename Q::target;
  static constexpr std::string_view evaluation_name = "evaluation";
  static constexpr std::uint8_t whole_step = phase_first | phase_last;
  static constexpr std::size_t frames = Q::frames;                  // how many steps can be in flight
  static constexpr bool records_dispatches = RecordsDispatches<Q>;  // whether launches() describes recorded dispatches, not only the plan

  /// @error model_mismatch where a plan has other parameters than the first, out_of_memory, missing_feature, device_lost
  static result<session> load(std::span<const named_plan> plans, Q queue) {
    session s(std::move(queue));
    if (auto r = s.memory::load(plans); !r) return r.error();
    s.last_frame_.resize(plans.size());
    return s;
  }
  static result<session> load(std::vector<owned_plan> plans, Q queue) {
    auto owned = std::make_unique<std::vector<owned_plan>>(std::move(plans));
    std::vector<named_plan> seen;
    for (const owned_plan& p : *owned) seen.push_back({p.name, p.plan});
    auto s = load(seen, std::move(queue));
    if (s) s->owned_ = std::move(owned);
    return s;
  }

  session(session&&) = default;
  session& operator=(session&& o) noexcept {
    if (this == &o) return *this;
    std::destroy_at(this);
    return *std::construct_at(this, std::move(o));
  }
  ~session() { drain(); }

  /// Sets every parameter from its initializer, with the same bits for the same seed on any machine. Moments, gradients and states become zero.
  void initialize(std::uint64_t seed) {
    drain();
    step_count_ = 0;
    keep(memory::initialize_all(seed));
  }

  /// Zeroes every state, to begin a new sequence.
  void clear_states() {
    drain();
    keep(memory::clear_all_states());
  }

  /// The elements of an input of a plan. They may be written at any time between runs; runs in flight have their own copy. Every later run reads them, in
  /// all its micro-batches, until the input is `set`. Plans that have an input of the same name, format and size share it.
  /// @error not_found, with the names there are; invalid_argument for another type
  template <class E> result<std::span<E>> input(std::string_view label, std::size_t which = 0) {
    return inputs_.template open<E>(which, label);
  }
  /// Copies numbers into an input, which later runs read until it is set again. Spans from `input` are not read after this call.
  /// @error as `input`; invalid_argument for another length
  template <class E> result<void> set(std::string_view label, std::span<const E> from, std::size_t which = 0) {
    return inputs_.set(which, label, from);
  }
  /// Fills an input from a buffer of the same device. @error wrong_device; as `set`
  template <class E> result<void> upload(std::string_view label, const buffer<E, Q>& from) {
    if (!from.on(queue_.device()))
      return fail(errc::wrong_device, "the buffer belongs to another device", std::string(label), "allocate it on the session's device");
    return set<E>(label, from.span());
  }
  /// The whole input region of the first plan, gaps included, for checkers. Call it again before each write.
  std::span<std::byte> input_bytes() { return inputs_.write_all(0); }
  /// The input region of the first plan as kernels see it in the first frame.
  std::span<const std::byte> device_inputs() const { return inputs_.seen(0, frames_[0].upload.mapped()); }
  /// Copies a batch into the inputs of a plan. @error invalid_argument for another size or type than the plan's: nothing is copied
  template <Batch B> result<void> put(const B& b, std::size_t which = 0) {
    const port* wrong = nullptr;
    b.each_input([&](std::string_view label, auto from) {
      if (wrong == nullptr) wrong = mismatched_port(plans_[which].inputs, label, from);
    });
    if (wrong != nullptr)
      return fail(errc::invalid_argument,
                  "the batch has another size or type than the plan's input of " + std::to_string(wrong->where.dims.count()) + " " +
                      std::string(name_of(wrong->where.type)),
                  std::string(wrong->label.view()), "give all inputs whole");
    b.each_input([&](std::string_view label, auto from) {
      if (!from.empty() && find_port(plans_[which].inputs, label) != nullptr) static_cast<void>(set(label, from, which));
    });
    return {};
  }

  /// Waits for the last run of a plan and returns one of its outputs, valid until the plan runs again. @error not_found, with the names there are;
  /// invalid_argument for another type, or if the output stays on the device; device_lost
  template <class E> result<std::span<E>> output(std::string_view label, std::size_t which = 0) {
    auto p = typed_port(plans_[which].outputs, label, std::int64_t(sizeof(E)), "output");
    if (!p) return p.error();
    const operand& o = (*p)->where;
    if (!retire(last_frame_[which])) return broken_;
    std::byte* at = memory::on_host(o, which, last_frame_[which]);
    if (at == nullptr)
      return fail(errc::invalid_argument, std::string(label) + " stays on the device", "session", "read it with `read` or `numbers`");
    return std::span<E>(reinterpret_cast<E*>(at), std::size_t(o.dims.count()));
  }

  /// Runs the first plan once on the values that its inputs hold. `active` is the set of phases, for callers that accumulate micro-batches themselves. If the
  /// device fails, the report is marked skipped and its loss is NaN: see `status`.
  step_report run(const step_scalars& x, std::uint8_t active = whole_step) { return drain(), collect(start(0, x, active)); }
  /// Runs any plan once, with scalars and phases as in `run`, and waits for its end. @error as `status`
  result<void> run_plan(std::size_t which, const step_scalars& x = {}, std::uint8_t active = phase_always) {
    if (which == 0) return run(x, active), status();
    if (!broken_.what.empty() || !retire(0)) return broken_;
    put_host_data(0, which, x);
    auto v = memory::submit_in(0, which, active, x.sizes);
    if (!v) return keep(v.error()), broken_;
    note(*v);
    ++counters_.evaluations;
    last_frame_[which] = 0;
    frames_[0].pending = v->value;
    return retire(0) ? result<void>{} : broken_;
  }
  /// Runs a plan several times, one after another: a plan that gives itself its next inputs, by states. Waits for the end of the last run, whose outputs stay.
  /// It is one submission where the queue can repeat runs, else one for each run. @error as `status`
  result<void> run_plan_times(std::size_t which, int times, const step_scalars& x = {}) {
    drain();
    if (!broken_.what.empty()) return broken_;
    const std::uint8_t active = which == 0 ? whole_step : phase_always;
    put_host_data(0, which, x);
    const auto started = [&](const result<submission>& s) {
      if (!s) return keep(result<void>(s.error()));
      note(*s);
      frames_[0].pending = s->value;
      return true;
    };
    if constexpr (RepeatsRuns<Q>) {
      if (times > 0 && !started(memory::submit_in(0, which, active, x.sizes, times))) return broken_;
    } else {
      for (int k = 0; k < times; ++k)
        if (!started(memory::submit_in(0, which, active, x.sizes))) return broken_;
    }
    counters_.evaluations += times;
    last_frame_[which] = 0;
    return retire(0) ? result<void>{} : broken_;
  }
  /// The mean loss of one batch by the plan named `evaluation`; NaN if there is no such plan, the batch has another size, or the device failed.
  template <Batch B> double evaluate(const B& b) {
    const auto which = find(evaluation_name);
    if (!which || plans_[*which].steps.empty() || !fits(b, *which) || !give(b, *which, 0) || !run_plan(*which) ||
        queue_.diagnose().no_readback)
      return nothing().loss;
    counters_.bytes_out += size_of(accum);
    return number("output", *which, 0);
  }
  /// One optimiser step over one or more micro-batches. More than one needs a plan with training_options::accumulate. Without it, or if a batch does not have
  /// the plan's size, nothing runs. In these cases, and if the device fails (see `status`), the report is marked skipped and its loss is NaN.
  template <Batch B> step_report step(std::span<const B> batches, const step_scalars& given) {
    if (batches.empty() || (batches.size() > 1 && !accumulates(plan()))) return nothing();
    for (const B& b : batches)
      if (!fits(b)) return nothing();
    drain();  // so that step_count() includes the steps submitted before
    std::array<pending_step, frames> in_flight{};
    for (std::size_t i = 0; i < batches.size(); ++i) {
      step_scalars x = given;
      x.gradient_scale = given.gradient_scale / float(batches.size());
      x.counter = given.counter + i;
      const std::size_t turn = i % frames;
      collect(in_flight[turn]);
      give(batches[i], 0, turn);
      in_flight[turn] = start(turn, x, std::uint8_t((i == 0 ? phase_first : phase_later) | (i + 1 == batches.size() ? phase_last : 0)));
    }
    step_report r;
    for (std::size_t k = 0; k < frames; ++k) r = collect(in_flight[(batches.size() + k) % frames]);  // the last micro-batch comes last
    r.loss /= double(batches.size());
    return r;
  }
  template <class Batches> requires(!Batch<Batches>) step_report step(const Batches& all, const step_scalars& x) {
    return step<typename Batches::value_type>(std::span<const typename Batches::value_type>(all), x);
  }
  template <Batch B> step_report step(const B& b, const step_scalars& x) { return step(std::span<const B>(&b, 1), x); }

  /// Submits a step over one batch and returns at once. As many steps may be in flight as the queue has frames; a further call waits for the oldest. `collect`
  /// returns the report; those of the last `frames` + 1 steps that ended are kept. A batch of another size is not submitted, and its report is marked skipped.
  template <Batch B> pending_step submit(const B& b, const step_scalars& x) {
    if (!fits(b) || !give(b, 0, frame_after(next_frame_))) return {};
    return submit(x);
  }
  /// As above, on the values that the inputs hold: those of `next_input` where it was called.
  pending_step submit(const step_scalars& x) {
    next_frame_ = frame_after(next_frame_);
    auto p = start(next_frame_, x, whole_step);
    if (p.value == 0) return {};
    p.asynchronous = true;
    ++in_flight_;
    uncollected_[next_frame_] = p;
    return p;
  }
  /// Memory for an input of the step that the next call of `submit` starts. The caller writes all of it; it is not copied where the host reads the device's upload
  /// memory fast. Waits if as many steps are in flight as can be. @error as `input`, `status`
  template <class E> result<std::span<E>> next_input(std::string_view label) {
    const std::size_t k = frame_after(next_frame_);
    if (!broken_.what.empty() || !retire(k)) return broken_;
    return inputs_.template renew<E>(k, HasCachedUploads<Q> ? frames_[k].upload.mapped() : nullptr, 0, label);
  }
  /// Waits for a step and reads its loss and norm.
  step_report collect(const pending_step& p) {
    if (p.value == 0) return nothing();
    if (p.asynchronous) {
      if (uncollected_[p.frame].value == p.value) retire(p.frame);
      for (const auto& f : finished_)
        if (f.value == p.value) return f.report;
      return nothing();
    }
    if (!keep(queue_.wait(p.value))) return nothing();
    if (frames_[p.frame].pending == p.value) frames_[p.frame].pending = 0;
    return read_report(p);
  }
  /// Like `run`, but runs the steps of the plan one at a time and calls after(step) after each; `numbers` then reads what the step wrote.
  template <class After> step_report observe(const step_scalars& x, const After& after, std::uint8_t active = whole_step) {
    drain();
    if (!broken_.what.empty()) return nothing();
    if (auto r = queue_.prepare(frames_[0].plans[0], active, x.sizes); !r) return keep(r.error()), nothing();
    put_host_data(0, 0, x);
    auto done = queue_.observe(frames_[0].plans[0], active, after);
    if (!done) return keep(done.error()), nothing();
    counters_.launches += done->launches;
    return ended(*done, active);
  }
  /// Like `run`, but measures each launch with the device's clock, so launches do not overlap. The commands with timestamps are recorded for this call only;
  /// other runs are not measured. @error missing_feature where the queue has no clock
  result<timed_step> profile(const step_scalars& x, std::uint8_t active = whole_step) requires TimesLaunches<Q> {
    drain();
    if (!broken_.what.empty()) return broken_;
    if (auto r = queue_.prepare(frames_[0].plans[0], active, x.sizes); !r) return keep(r.error()), broken_;
    put_host_data(0, 0, x);
    auto r = queue_.time(frames_[0].plans[0], active);
    if (!r && r.error().code != errc::missing_feature) keep(r.error());
    if (!r) return r.error();
    return timed_step{*std::move(r), ended({1, 0, 0}, active)};
  }

  /// Copies the logical f32 values of one tensor. @error not_found (no such slot, or nothing of that kind), invalid_argument (length), device_lost
  result<void> read(tensor_kind what, std::size_t k, std::span<float> out) const { return read(std::array{tensor_read{what, k, out}}); }
  /// Reads many tensors in as few copies as the queue can make.
  result<void> read(std::span<const tensor_read> all) const { return memory::read_all(all); }
  /// Writes the logical f32 values of one tensor. @error not_found, invalid_argument (length, or beyond the range of the parameter's format), device_lost
  result<void> write(tensor_kind what, std::size_t k, std::span<const float> in) { return drain(), memory::write_one(what, k, in); }
  /// The elements of an operand of the first plan as f32. @error device_lost; invalid_argument for inputs, unless kernels work in host memory
  result<std::vector<float>> numbers(const operand& o) const { return memory::numbers_in(o); }

  const session_counters& counters() const { return counters_; }
  /// The number of the last optimiser step that was not skipped. A run whose `step_scalars::optimizer_step` is 0 gets the next number.
  std::int64_t step_count() const { return step_count_; }
  /// Restarts the bias correction, e.g. after the moments were cleared.
  void reset_step() { step_count_ = 0; }
  /// The first failure of the device, after which nothing runs. @error device_lost, timeout, out_of_memory
  result<void> status() const {
    if (broken_.what.empty()) return {};
    return broken_;
  }

  /// A digest of the algorithms that the queue chose for the loaded plans; empty: it chose none.
  std::string algorithms() const requires ChoosesAlgorithms<Q> { return std::string(queue_.algorithms()); }

  /// The launches of a run of the first plan, for reports.
  std::vector<launch_row> launches(std::uint8_t active = whole_step) const { return queue_.rows(frames_[0].plans[0], active); }
  /// The dispatches of a run of the first plan, for checkers.
  auto dispatches(std::uint8_t active = whole_step) const requires RecordsDispatches<Q> { return frames_[0].plans[0].dispatches(active); }
  /// The first plan as the queue runs it, for callers that change which variants it runs.
  typename Q::plan& bound_plan() { return frames_[0].plans[0]; }
  /// Fills all memory that the device may write with a byte, for checkers. @error device_lost
  result<void> poison(std::byte with) { return drain(), memory::poison_all(with); }
  /// Writes the scalars that kernels read in the first frame, for callers that start dispatches one by one.
  void set_scalars(const step_scalars& x) { put_host_data(0, 0, x); }

 private:
  using memory::accum, memory::frames_, memory::inputs_, memory::plans_, memory::queue_;
  struct finished {
    std::uint64_t value = 0;
    step_report report;
  };

  std::unique_ptr<std::vector<owned_plan>> owned_;
  std::vector<std::size_t> last_frame_;  // the frame of each plan's last run
  std::array<pending_step, frames> uncollected_{};
  std::array<finished, frames + 1> finished_{};  // reports of submitted steps that ended before `collect`
  std::size_t next_frame_ = 0, next_finished_ = 0;
  int in_flight_ = 0;
  std::int64_t step_count_ = 0, last_step_ = 0;
  session_counters counters_;
  failure broken_;

  explicit session(Q queue) : memory(std::move(queue)) {}
  static std::size_t frame_after(std::size_t k) { return (k + 1) % frames; }
  bool keep(const result<void>& r) {
    if (!r && broken_.what.empty()) broken_ = r.error();
    return r.ok();
  }
  /// Waits until a frame is free. Reads the report of the step that was in flight there, since the next step overwrites it.
  bool retire(std::size_t k) {
    const auto value = std::exchange(frames_[k].pending, 0);
    const bool well = value == 0 || keep(queue_.wait(value));
    if (const auto p = std::exchange(uncollected_[k], {}); p.value != 0) {
      --in_flight_;
      finished_[next_finished_] = {p.value, well ? read_report(p) : nothing()};
      next_finished_ = (next_finished_ + 1) % finished_.size();
    }
    return well;
  }
  /// Waits for all runs of this session.
  void drain() {
    for (std::size_t k = 0; k < frames_.size(); ++k) retire(k);
  }
  static step_report nothing() { return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN(), true}; }
  template <Batch B> bool fits(const B& b, std::size_t which = 0) const {
    bool all = true;
    b.each_input([&](std::string_view label, auto from) { all = all && mismatched_port(plans_[which].inputs, label, from) == nullptr; });
    return all;
  }
  /// Gives a batch that fits to the inputs of a plan, whose next run is in frame k: copied once, to the frame, where the host reads that memory fast.
  template <Batch B> bool give(const B& b, std::size_t which, std::size_t k) {
    if constexpr (HasCachedUploads<Q>) {
      if (!broken_.what.empty() || !retire(k)) return false;
      std::byte* const upload = frames_[k].upload.mapped();
      b.each_input([&](std::string_view label, auto from) { inputs_.set_in(k, upload, which, label, from); });
      return true;
    } else {
      return put(b, which).ok();
    }
  }

  void note(const submission& s) {
    counters_.launches += s.launches;
    counters_.barriers += s.barriers;
    ++counters_.submits;
  }
  pending_step start(std::size_t k, const step_scalars& x, std::uint8_t active) {
    if (!broken_.what.empty() || !retire(k)) return {};
    if (auto r = queue_.prepare(memory::plan_in(k, 0), active, x.sizes); !r) return keep(r.error()), pending_step{};
    put_host_data(k, 0, x);
    auto s = memory::submit_in(k, 0, active, x.sizes);
    if (!s) return keep(s.error()), pending_step{};
    frames_[k].pending = s->value;
    note(*s);
    ++counters_.steps;
    last_frame_[0] = k;
    return {s->value, k, active, last_step_, false};
  }
  /// Writes the scalars and inputs of the next run to a frame that is free. That run may write to gradients, moments and states.
  void put_host_data(std::size_t frame, std::size_t which, const step_scalars& x) {
    std::byte* upload = frames_[frame].upload.mapped();
    last_step_ = x.optimizer_step > 0 ? x.optimizer_step : step_count_ + in_flight_ + 1;
    queue_.put_scalars(upload, x, last_step_);
    counters_.bytes_in += Q::scalar_bytes + inputs_.put(frame, which, upload, queue_.diagnose().force_upload);
    this->fresh_ = false;
  }
  /// The report of a run in the first frame that has ended.
  step_report ended(const submission& s, std::uint8_t active) {
    ++counters_.steps;
    last_frame_[0] = 0;
    return read_report({s.value, 0, active, last_step_, false});
  }
  double number(std::string_view label, std::size_t which, std::size_t frame) const {
    const port* p = find_port(plans_[which].outputs, label);
    return p == nullptr ? 0 : norm_at(memory::on_host(p->where, which, frame), p->where);
  }
  step_report read_report(const pending_step& p) {
    if (queue_.diagnose().no_readback) return nothing();
    step_report r{number("loss", 0, p.frame), number("grad_norm", 0, p.frame), false};
    r.skipped = !std::isfinite(r.loss) || !std::isfinite(r.grad_norm);
    counters_.bytes_out += report_bytes(plans_[0]);
    if ((p.active & phase_last) != 0 && !r.skipped)
      step_count_ = p.asynchronous ? std::max(step_count_, p.optimizer_step) : p.optimizer_step;  // frames may end in either order
    return r;
  }
};

}  // namespace isotope
