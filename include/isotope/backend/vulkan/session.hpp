#pragma once
/// A loaded program: parameters, optimiser state and activations in one arena, the steps recorded as command buffers.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/batch.hpp"
#include "../../plan/dynamic.hpp"
#include "../initial_tensor.hpp"
#include "arena_layout.hpp"
#include "buffer.hpp"
#include "host_inputs.hpp"
#include "lane.hpp"
#include "launch_times.hpp"
#include "session_counters.hpp"
#include "transfer.hpp"

namespace isotope::vulkan {

template <Target T> class session {
 public:
  using target = T;

  /// Plans must outlive the session, or be handed over as dynamic plans. `evaluation`, if it has steps, is a forward plan of the same
  /// parameters; it works in the temporaries of `plan`. @error out_of_memory, missing_feature, model_mismatch, device_lost
  static result<session> load(const plan_view& plan, const plan_view& evaluation, std::shared_ptr<context> device,
                              std::shared_ptr<pipelines> made) {
    if (auto r = same_parameters(plan, evaluation); !r) return r.error();
    session s;
    auto parts = session_parts::create(std::move(device), std::move(made));
    if (!parts) return parts.error();
    s.parts_ = *std::move(parts);
    s.plan_ = plan;
    if (auto r = s.allocate(evaluation); !r) return r.error();
    if (auto r = s.transfer_.clear(s.arena_, 0, s.arena_.bytes() / 4 * 4); !r) return r.error();
    if (auto r = s.bind(evaluation); !r) return r.error();
    s.parts_->made->save();
    return s;
  }
  static result<session> load(dynamic_plan plan, dynamic_plan evaluation, std::shared_ptr<context> device,
                              std::shared_ptr<pipelines> made) {
    auto owned = std::make_unique<std::array<dynamic_plan, 2>>(std::array<dynamic_plan, 2>{std::move(plan), std::move(evaluation)});
    auto s = load(plan_view((*owned)[0]), plan_view((*owned)[1]), std::move(device), std::move(made));
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

  /// The state dict, in the order that `read` and `write` count.
  std::span<const slot> parameters() const { return plan_.slots; }

  /// Sets every parameter from its initializer, the same bits for the same seed on any machine; moments to zero.
  void initialize(std::uint64_t seed) {
    drain();
    step_count_ = 0;
    for (const auto k : {value_kind::param, value_kind::master, value_kind::state, value_kind::grad})
      keep(transfer_.clear(arena_, layout_[k], plan_.totals.region[std::size_t(k)]));
    std::vector<float> x;
    for (const slot& s : plan_.slots) {
      x.resize(std::size_t(s.dims.count()));
      fill_initial(s.init, seed, stream_of(s.path.view()), x);
      keep(put_parameter(s, x, s.init.how == initializer::kind::zeros));
    }
  }

  /// The elements of an input, in memory of the host: to be filled at any time, also while a step is in flight, which has a copy. Every later step
  /// reads them, in all its micro-batches, until they are written again; a batch takes the place of "tokens" and "targets". The evaluation reads
  /// them, too, where its plan has the input in the same format and size. @error not_found, with the names there are
  template <class E> result<std::span<E>> input(std::string_view label) { return inputs_.of_training<E>(label); }
  /// The elements of an input that the evaluation plan alone has, or in another size; as `input`. @error not_found, with the names there are
  template <class E> result<std::span<E>> evaluation_input(std::string_view label) { return inputs_.of_evaluation<E>(label); }
  /// An output of the last step, which is waited for; valid until the next one begins. @error not_found, with the names there are; device_lost
  template <class E> result<std::span<E>> output(std::string_view label) {
    auto p = typed_port(plan_.outputs, label, std::int64_t(sizeof(E)), "output");
    if (!p) return p.error();
    if ((*p)->where.region != value_kind::output)
      return fail(errc::invalid_argument, std::string(label) + " stays on the device", "session", "read it with `read` or `numbers`");
    auto& l = lanes_[last_lane_];
    if (!settle(l)) return broken_;
    return std::span<E>(reinterpret_cast<E*>(l.readback.mapped() + (*p)->where.at), std::size_t((*p)->where.dims.count()));
  }
  /// Fills an input from a buffer of the same device. @error wrong_device, not_found, invalid_argument (another type or length)
  template <class E> result<void> upload(std::string_view label, const buffer<E>& from) {
    if (!from.on(parts_->device))
      return fail(errc::wrong_device, "the buffer belongs to another device", std::string(label), "allocate it on the session's device");
    return copy_to_input(input<E>(label), from.span(), label);
  }

  /// One optimiser step on what the inputs hold; `active` is the set of phases, for callers that accumulate by hand.
  step_report run(const step_scalars& x, std::uint8_t active = phase_first | phase_last) { return drain(), collect(start(0, x, active)); }

  /// As `run`, a step of the plan at a time, with after(step) called after each, when `numbers` gives what it wrote.
  template <class After> step_report observe(const step_scalars& x, const After& after, std::uint8_t active = phase_first | phase_last) {
    drain();
    const auto all = lanes_[0].train.dispatches(active);
    if (!broken_.what.empty() || !keep(parts_->made->make(all))) return nothing();
    put_host_data(lanes_[0], x);
    auto done = run_one_by_one(*parts_, all, after);
    if (!done) return keep(done.error()), nothing();
    ++counters_.steps;
    last_lane_ = 0;
    return collect({*done, 0, active, last_step_, false});
  }
  /// The elements of an operand of the plan, as they are. @error device_lost
  result<std::vector<float>> numbers(const operand& o) const {
    std::vector<std::byte> bytes(std::size_t(o.bytes));
    if (o.region == value_kind::input) return fail(errc::invalid_argument, "inputs are not read back", "session", "keep what was written");
    if (auto r = transfer_.download(arena_, layout_[o.region] + o.at, bytes); !r) return r.error();
    return numbers_of(bytes.data(), o);
  }
  /// Copies a batch into the inputs, for `run` and `observe`. @error invalid_argument for another size than the plan's
  result<void> put(const batch& b) {
    if (inputs_.take(b, inputs_.train)) return {};
    return fail(errc::invalid_argument, "the batch has another size than the plan's inputs", "session", "give all inputs whole");
  }
  /// As `run`, with a clock around each launch, which keeps them from overlapping. Its commands are recorded for it alone: those of other steps have
  /// no clock, before it and after. @error missing_feature where the queue has no clock
  result<timed_step> profile(const step_scalars& x, std::uint8_t active = phase_first | phase_last) {
    drain();
    const auto all = lanes_[0].train.dispatches(active);
    if (auto r = parts_->made->make(all); !r) return r.error();
    put_host_data(lanes_[0], x);
    auto r = time_launches(parts_->commands, *parts_->made, all, plan_barriers(all));
    if (!r && r.error().code != errc::missing_feature) keep(r.error());
    if (!r) return r.error();
    ++counters_.steps;
    last_lane_ = 0;
    return timed_step{*std::move(r), read_report({1, 0, active, last_step_, false})};
  }

  /// One optimiser step over one or more micro-batches of token ids, one submission each. More than one needs a plan with
  /// training_options::accumulate; without it, or with a batch of another size than the plan's, nothing runs and the report is skipped with a loss of
  /// NaN; so it is when the device failed: `status` says how.
  step_report step(std::span<const batch> batches, const step_scalars& given) {
    if (batches.empty() || (batches.size() > 1 && !accumulates(plan_))) return nothing();
    for (const batch& b : batches)
      if (!fits(plan_.inputs, b)) return nothing();
    drain();  // submitted steps are counted first
    std::array<std::optional<pending_step>, 2> flying;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const bool last = i + 1 == batches.size();
      step_scalars x = given;
      x.gradient_scale = given.gradient_scale / float(batches.size());
      x.counter = given.counter + i;
      const std::size_t turn = i % lanes_.size();
      if (flying[turn]) collect(*flying[turn]);
      inputs_.take(batches[i], inputs_.train);
      flying[turn] = start(turn, x, std::uint8_t((i == 0 ? phase_first : phase_later) | (last ? phase_last : 0)));
    }
    const std::size_t end = (batches.size() - 1) % 2;
    if (flying[end ^ 1]) collect(*flying[end ^ 1]);
    step_report r = collect(*flying[end]);
    r.loss /= double(batches.size());
    return r;
  }

  /// Submits a step over one batch and returns at once; two may be in flight, a third waits for the first. The report comes from `collect`, where two
  /// submitted steps are the most whose reports are kept. A batch of another size than the plan's is not submitted; its report is skipped.
  pending_step submit(const batch& b, const step_scalars& x) {
    if (!inputs_.take(b, inputs_.train)) return {};
    next_lane_ ^= 1;
    auto p = start(next_lane_, x, phase_first | phase_last);
    p.asynchronous = p.value != 0;
    in_flight_ += p.asynchronous ? 1 : 0;
    if (p.asynchronous) lanes_[p.lane].uncollected = p;
    return p;
  }
  /// Waits for a step and reads its loss and norm.
  step_report collect(const pending_step& p) {
    if (p.value == 0) return nothing();
    auto& l = lanes_[p.lane];
    if (p.asynchronous) {
      if (l.uncollected.value == p.value) settle(l);
      return l.finished == p.value ? l.report : nothing();
    }
    if (!keep(parts_->device->wait(p.value))) return nothing();
    if (l.pending == p.value) l.pending = 0;
    return read_report(p);
  }

  /// Mean loss of one batch by the evaluation plan; NaN without one.
  double evaluate(const batch& b) {
    auto& l = lanes_[0];
    if (l.evaluate.plan().steps.empty() || !fits(l.evaluate.plan().inputs, b) || !settle(l)) return nothing().loss;
    inputs_.share();
    inputs_.take(b, inputs_.evaluation);
    put_inputs(l, inputs_.evaluation);
    auto v = l.evaluate.prepare(phase_always, {});
    if (!v) return keep(v.error()), nothing().loss;
    auto value = parts_->device->submit((*v)->commands);
    if (!value) return keep(value.error()), nothing().loss;
    note(**v);
    ++counters_.evaluations;
    if (!keep(parts_->device->wait(*value)) || parts_->device->options.diagnose.no_readback) return nothing().loss;
    counters_.bytes_out += size_of(accum);
    return l.number(l.evaluate.plan().outputs, "output", eval_output_);
  }

  /// Copies the logical f32 values of one tensor. @error not_found (no such slot, or nothing of that kind), invalid_argument (length), device_lost
  result<void> read(tensor_kind what, std::size_t k, std::span<float> out) const { return read(std::array{tensor_read{what, k, out}}); }
  /// As `read`, of many tensors, which come in as few copies as fit the staging memory.
  result<void> read(std::span<const tensor_read> all) const {
    const auto pieces = layout_.pieces(plan_, all);
    if (!pieces) return pieces.error();
    return transfer_.download(arena_, *pieces);
  }
  bool keeps(tensor_kind what, std::size_t k) const { return isotope::keeps(plan_, what, k); }  // whether `read` finds such a tensor
  result<void> write(tensor_kind what, std::size_t k, std::span<const float> in) {
    drain();
    if (auto r = has_slot(plan_, k, std::int64_t(in.size())); !r) return r;
    if (what == tensor_kind::parameter) return put_parameter(plan_.slots[k], in);
    const auto at = locate(plan_, what, k, std::int64_t(in.size()));
    if (!at) return at.error();
    return transfer_.upload(arena_, layout_[at->region] + at->at, std::as_bytes(in));
  }

  std::int64_t planned_bytes() const { return planned_; }
  /// Memory taken from the device.
  std::int64_t measured_bytes() const {
    std::int64_t n = arena_.bytes() + parts_->words->bytes() + transfer_.bytes();
    for (const auto& l : lanes_) n += l.bytes();
    return n;
  }
  /// The inputs as the device reads them in lane 0, for checkers.
  std::span<const std::byte> device_inputs() const { return host_inputs::seen(lanes_[0], inputs_.train); }
  const session_counters& counters() const { return counters_; }
  /// What the device as a whole did: allocations, submissions, objects made.
  const context_counters& device_counters() const { return parts_->device->counters; }
  /// The optimiser step of the last update, skipped ones not counted; `step_scalars::optimizer_step = 0` asks for the next one.
  std::int64_t step_count() const { return step_count_; }
  /// Starts the bias correction over, e.g. after the moments were cleared.
  void reset_step() { step_count_ = 0; }
  const plan_view& plan() const { return plan_; }
  /// The first failure of the device: after it nothing runs. @error device_lost, timeout, out_of_memory
  result<void> status() const {
    if (broken_.what.empty()) return {};
    return broken_;
  }

  /// The dispatches of a step as they are recorded, and what tells them apart from a device: for reports and checkers.
  std::vector<dispatch> dispatches(std::uint8_t active = phase_first | phase_last) const { return lanes_[0].train.dispatches(active); }
  session_parts& parts() { return *parts_; }
  memory& arena() { return arena_; }
  transfer& staging() { return transfer_; }
  /// Writes the scalars that the next dispatches of lane 0 read, for those who start them one by one.
  void set_scalars(const step_scalars& x) { put_host_data(lanes_[0], x); }

 private:
  static constexpr dtype accum = accum_of(T::precision::type);
  static constexpr std::int64_t head = 256;  // bytes of the scalars at the front of the upload memory
  static_assert(sizeof(device_scalars) <= std::size_t(head));
  std::unique_ptr<session_parts> parts_;
  std::unique_ptr<std::array<dynamic_plan, 2>> owned_;
  plan_view plan_;
  memory arena_;
  mutable transfer transfer_;
  arena_layout layout_;
  std::int64_t eval_input_ = 0, eval_output_ = 0;  // of the evaluation, in the lanes' memory
  std::array<vulkan::lane, 2> lanes_;
  host_inputs inputs_;
  std::size_t next_lane_ = 0, last_lane_ = 0;  // of the next submitted step; of the last step, submitted or not
  int in_flight_ = 0;
  std::int64_t planned_ = 0, step_count_ = 0, last_step_ = 0;
  session_counters counters_;
  failure broken_;

  session() = default;
  bool keep(const result<void>& r) {
    if (!r && broken_.what.empty()) broken_ = r.error();
    return r.ok();
  }
  /// Waits until the lane is free. The report of a submitted step is read now, since the next step overwrites it.
  bool settle(vulkan::lane& l) {
    const bool well = l.pending == 0 || keep(parts_->device->wait(std::exchange(l.pending, 0)));
    if (const auto p = std::exchange(l.uncollected, {}); p.value != 0) {
      --in_flight_;
      l.finished = p.value;
      l.report = well ? read_report(p) : nothing();
    }
    return well;
  }
  /// Nothing of this session runs afterwards.
  void drain() {
    if (parts_ == nullptr) return;
    for (auto& l : lanes_) settle(l);
  }
  static step_report nothing() { return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN(), true}; }

  result<void> allocate(const plan_view& evaluation) {
    const auto region = [](const plan_view& p, value_kind k) { return p.totals.region[std::size_t(k)]; };
    layout_ = arena_layout::of(plan_, evaluation);
    auto m =
        memory::allocate(parts_->device, layout_.bytes, memory_use::device, "isotope arena", parts_->device->options.diagnose.chunk_bytes);
    if (!m) return m.error();
    arena_ = std::move(*m);
    eval_input_ = head + region(plan_, value_kind::input);
    eval_output_ = region(plan_, value_kind::output);
    inputs_ = host_inputs({plan_.inputs, head, region(plan_, value_kind::input)},
                          {evaluation.inputs, eval_input_, region(evaluation, value_kind::input)});
    auto moving = transfer::create(parts_->commands);
    if (!moving) return moving.error();
    transfer_ = std::move(*moving);
    planned_ = layout_.bytes + transfer_.bytes() + word_memory::chunk;
    for (auto& l : lanes_) {
      auto made = lane::allocate(parts_->device, eval_input_ + region(evaluation, value_kind::input),
                                 eval_output_ + region(evaluation, value_kind::output));
      if (!made) return made.error();
      l = std::move(*made);
      planned_ += l.upload.bytes() + l.readback.bytes();
    }
    return {};
  }
  result<void> bind(const plan_view& evaluation) {
    for (const plan_view& p : {plan_, evaluation}) parts_->scores.add(p);
    const kernel_set kernels{kernel_table<T>, code_of<T>(), own_instructions_of<T>()};
    for (auto& l : lanes_) {
      const auto addresses = [&](std::int64_t inputs, bool evaluates) {
        return layout_.addresses(arena_.address(), l.upload.address(), inputs, evaluates);
      };
      l.train = loaded_plan(plan_, kernels, addresses(head, false), l.readback.address(), *parts_);
      l.evaluate =
          loaded_plan(evaluation, kernels, addresses(eval_input_, true), l.readback.address() + std::uint64_t(eval_output_), *parts_);
    }
    // What every caller needs is recorded at once; the second lane and the other phases when they are first used.
    const std::array<std::int32_t, 16> sizes{};
    if (!lanes_[0].train.dynamic())
      if (auto v = lanes_[0].train.prepare(phase_first | phase_last, sizes); !v) return v.error();
    if (!evaluation.steps.empty())
      if (auto v = lanes_[0].evaluate.prepare(phase_always, sizes); !v) return v.error();
    return {};
  }

  void note(const loaded_plan::variant& v) {
    counters_.launches += std::int64_t(v.dispatches.size());
    counters_.barriers += v.barriers;
    ++counters_.submits;
  }
  pending_step start(std::size_t k, const step_scalars& x, std::uint8_t active) {
    auto& l = lanes_[k];
    if (!broken_.what.empty() || !settle(l)) return {};
    auto v = l.train.prepare(active, x.sizes);
    if (!v) return keep(v.error()), pending_step{};
    put_host_data(l, x);
    auto value = parts_->device->submit((*v)->commands);
    if (!value) return keep(value.error()), pending_step{};
    l.pending = *value;
    note(**v);
    ++counters_.steps;
    last_lane_ = k;
    return {*value, k, active, last_step_, false};
  }

  void put_inputs(vulkan::lane& l, const host_inputs::region& from) {
    counters_.bytes_in += inputs_.put(l, from, parts_->device->options.diagnose.force_upload);
  }
  /// What the next step of a lane that is free reads from the host.
  void put_host_data(vulkan::lane& l, const step_scalars& x) {
    const auto s = device_scalars::of(x, x.optimizer_step > 0 ? x.optimizer_step : step_count_ + in_flight_ + 1);
    std::memcpy(l.upload.mapped(), &s, sizeof s);
    counters_.bytes_in += std::int64_t(sizeof s);
    last_step_ = s.given.optimizer_step;
    put_inputs(l, inputs_.train);
  }
  step_report read_report(const pending_step& p) {
    if (parts_->device->options.diagnose.no_readback) return nothing();
    const step_report r = lanes_[p.lane].read_report(plan_.outputs);
    counters_.bytes_out += report_bytes(plan_);
    if ((p.active & phase_last) != 0 && !r.skipped)
      step_count_ = p.asynchronous ? std::max(step_count_, p.optimizer_step) : p.optimizer_step;  // lanes may end in either order
    return r;
  }
  result<void> put_parameter(const slot& s, std::span<const float> x, bool cleared = false) {
    if (auto r = within_range(s, x); !r) return r;
    if (parts_->scores.put(s, x, parts_->device->what().what.switches.oscillation_threshold))
      for (auto& l : lanes_) l.forget();
    if (cleared) return {};  // x is zeros, and so is the region
    const auto put = [&](value_kind k, dtype t, auto bytes) { return transfer_.upload(arena_, layout_[k] + s.at * size_of(t), bytes); };
    if (s.type == dtype::f32) return put(value_kind::param, s.type, std::as_bytes(x));
    const std::vector<std::uint16_t> halves = stored_halves(s.type, x);
    if (auto r = put(value_kind::param, s.type, std::as_bytes(std::span(halves))); !r) return r;
    if (plan_.totals.region[std::size_t(value_kind::master)] == 0) return {};
    return put(value_kind::master, accum, std::as_bytes(x));
  }
};

}  // namespace isotope::vulkan
