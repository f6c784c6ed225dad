#pragma once
/// A loaded program: parameters, optimiser state and activations in one arena, and the steps that work on them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/batch.hpp"
#include "../../core/diagnostics.hpp"
#include "../../core/error.hpp"
#include "../../core/initialize.hpp"
#include "../../plan/dynamic.hpp"
#include "../state_dict.hpp"
#include "arena.hpp"
#include "buffer.hpp"
#include "program.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {  // calls kernels: objects of another -march have their own

/// What a session did since it was loaded; differences between two readings describe the steps between them.
struct session_counters {
  std::int64_t steps = 0;        // runs of the training plan
  std::int64_t evaluations = 0;  // runs of the evaluation plan
  std::int64_t launches = 0;     // kernels started
  std::int64_t bytes_in = 0;     // copied into inputs, scalars included
  std::int64_t bytes_out = 0;    // loss and norm
};

template <Target T> class session {
 public:
  using target = T;

  /// Plans must outlive the session, or be handed over as dynamic plans. `evaluation`, if it has steps, is a forward plan of the same
  /// parameters; it works in the temporaries of `plan`.
  static result<session> load(const plan_view& plan, const plan_view& evaluation, std::shared_ptr<thread_pool> pool,
                              const diagnostics& diagnose = {}) {
    session s;
    s.pool_ = std::move(pool);
    s.no_readback_ = diagnose.no_readback;
    s.plan_ = plan;
    if (auto r = same_parameters(plan, evaluation); !r) return r.error();
    auto total = plan.totals.region;
    const auto kind = [](value_kind k) { return std::size_t(k); };
    total[kind(value_kind::temp)] = std::max(total[kind(value_kind::temp)], evaluation.totals.region[kind(value_kind::temp)]);
    std::int64_t bytes = block_bytes;  // the step scalars
    for (auto b : total) bytes += b;
    const std::int64_t extra = evaluation.totals.region[kind(value_kind::input)] + evaluation.totals.region[kind(value_kind::output)];
    auto memory = arena::allocate(bytes + extra);
    if (!memory) return memory.error();
    s.arena_ = std::move(*memory);
    s.planned_ = bytes + extra;
    s.scalars_ = new (s.arena_.data()) step_scalars{};
    static_assert(sizeof(step_scalars) <= std::size_t(block_bytes));
    std::byte* at = s.arena_.data() + block_bytes;
    for (std::size_t k = 0; k < total.size(); ++k) {
      s.base_[k] = at;
      at += total[k];
    }
    s.train_ = program(plan, s.base_, kernel_table<T>, code_of<T>(), s.pool_.get(), s.scalars_);
    if (!evaluation.steps.empty()) {
      s.eval_base_ = s.base_;
      s.eval_base_[kind(value_kind::input)] = at;
      s.eval_base_[kind(value_kind::output)] = at + evaluation.totals.region[kind(value_kind::input)];
      s.eval_ = program(evaluation, s.eval_base_, kernel_table<T>, code_of<T>(), s.pool_.get(), s.scalars_);
    }
    return s;
  }
  static result<session> load(dynamic_plan plan, dynamic_plan evaluation, std::shared_ptr<thread_pool> pool,
                              const diagnostics& diagnose = {}) {
    auto owned = std::make_unique<std::array<dynamic_plan, 2>>(std::array<dynamic_plan, 2>{std::move(plan), std::move(evaluation)});
    auto s = load(plan_view((*owned)[0]), plan_view((*owned)[1]), std::move(pool), diagnose);
    if (s) s->owned_ = std::move(owned);
    return s;
  }

  /// The state dict, in the order that `read` and `write` count.
  std::span<const slot> parameters() const { return plan_.slots; }

  /// Sets every parameter from its initializer, the same bits for the same seed on any machine; moments to zero.
  void initialize(std::uint64_t seed) {
    constexpr std::int64_t runs = 256;  // in one task
    for (const slot& s : plan_.slots) {
      const std::int64_t n = s.dims.count(), all = (n + initial_run - 1) / initial_run;
      pool_->parallel((all + runs - 1) / runs, [&](std::int64_t task, int) {
        for_initial_runs(s.init, seed, stream_of(s.path.view()), n, task * runs, (task + 1) * runs,
                         [&](std::int64_t i, const double* run, std::int64_t some) { put_parameters(s, i, run, some); });
      });
      pack(s);
    }
    clear(value_kind::state);
    clear(value_kind::grad);
    step_count_ = 0;
  }

  /// The elements of an input, to be filled between steps. Every later step reads them, in all its micro-batches, until they are written again; a
  /// batch takes the place of "tokens" and "targets". The evaluation reads them, too, where its plan has the input in the same format and size.
  /// @error not_found, with the names there are
  template <class E> result<std::span<E>> input(std::string_view label) { return port_span<E>(plan_.inputs, base_, label, "input"); }
  /// The elements of an input that the evaluation plan alone has, or in another size; as `input`. @error not_found, with the names there are
  template <class E> result<std::span<E>> evaluation_input(std::string_view label) {
    if (const port* p = find_port(eval_.plan().inputs, label); p != nullptr && same_port(plan_.inputs, *p) != nullptr)
      return input<E>(label);
    return port_span<E>(eval_.plan().inputs, eval_base_, label, "input of the evaluation");
  }
  /// The bytes of an output after a step. @error not_found, with the names there are
  template <class E> result<std::span<E>> output(std::string_view label) { return port_span<E>(plan_.outputs, base_, label, "output"); }

  /// Fills an input from a buffer of the same device. @error wrong_device, not_found, invalid_argument (another type or length)
  template <class E> result<void> upload(std::string_view label, const buffer<E>& from) {
    if (!from.on(pool_))
      return fail(errc::wrong_device, "the buffer belongs to another device", std::string(label), "allocate it on the session's device");
    const auto to = input<E>(label);
    if (to) counters_.bytes_in += std::int64_t(to->size_bytes());
    return copy_to_input(to, from.span(), label);
  }

  /// One optimiser step on what the inputs hold; `active` is the set of phases, for callers that accumulate by hand.
  step_report run(const step_scalars& x, std::uint8_t active = phase_first | phase_last) {
    return observe(x, [](std::size_t) {}, active);
  }
  /// As `run`, with after(step of the plan) called after each step, when `numbers` gives what it wrote.
  template <class After> step_report observe(const step_scalars& x, const After& after, std::uint8_t active = phase_first | phase_last) {
    fresh_ = false;
    *scalars_ = x;
    if (x.optimizer_step <= 0) scalars_->optimizer_step = step_count_ + 1;
    counters_.launches += train_.run(active, after);
    ++counters_.steps;
    counters_.bytes_in += std::int64_t(sizeof(step_scalars));
    step_report r{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN(), true};
    if (no_readback_) return r;
    counters_.bytes_out += report_bytes(plan_);
    r.loss = number(plan_.outputs, base_, "loss");
    const port* norm = find_port(plan_.outputs, "grad_norm");
    r.grad_norm = norm == nullptr ? 0 : norm_at(region(norm->where.region) + norm->where.at, norm->where);
    r.skipped = !std::isfinite(r.loss) || !std::isfinite(r.grad_norm);
    if ((active & phase_last) != 0 && !r.skipped) step_count_ = scalars_->optimizer_step;
    return r;
  }

  /// One optimiser step over one or more micro-batches of token ids. More than one needs a plan with training_options::accumulate;
  /// without it, or with a batch of another size than the plan's, nothing runs and the report is skipped with a loss of NaN.
  step_report step(std::span<const batch> batches, const step_scalars& given) {
    step_report r{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN(), true};
    if (batches.empty() || (batches.size() > 1 && !accumulates(plan_))) return r;
    for (const batch& b : batches)
      if (!fits(plan_.inputs, b)) return r;
    step_scalars x = given;
    x.gradient_scale = given.gradient_scale / float(batches.size());
    for (std::size_t i = 0; i < batches.size(); ++i) {
      fill_inputs(plan_.inputs, base_, batches[i]);
      counters_.bytes_in += std::int64_t(batches[i].tokens.size_bytes() + batches[i].targets.size_bytes());
      x.counter = given.counter + i;
      const bool last = i + 1 == batches.size();
      const auto active = std::uint8_t((i == 0 ? phase_first : phase_later) | (last ? phase_last : 0));
      const auto one = run(x, active);
      if (last) r = one;
    }
    r.loss /= double(batches.size());
    return r;
  }

  /// Mean loss of one batch by the evaluation plan; NaN without one.
  double evaluate(const batch& b) {
    const auto& p = eval_.plan();
    if (p.steps.empty() || !fits(p.inputs, b)) return std::numeric_limits<double>::quiet_NaN();
    for (const port& to : p.inputs)
      if (const port* from = same_port(plan_.inputs, to); from != nullptr)
        std::memcpy(eval_base_[std::size_t(to.where.region)] + to.where.at, base_[std::size_t(from->where.region)] + from->where.at,
                    std::size_t(from->where.bytes));
    fill_inputs(p.inputs, eval_base_, b);
    counters_.bytes_in += std::int64_t(b.tokens.size_bytes() + b.targets.size_bytes());
    counters_.launches += eval_.run(phase_always);
    ++counters_.evaluations;
    if (no_readback_) return std::numeric_limits<double>::quiet_NaN();
    counters_.bytes_out += size_of(accum);
    return number(p.outputs, eval_base_, "output");
  }

  /// Copies the logical f32 values of one tensor. @error not_found (no such slot, or nothing of that kind), invalid_argument (length)
  result<void> read(tensor_kind what, std::size_t k, std::span<float> out) const {
    auto at = find(what, k, std::int64_t(out.size()));
    if (!at) return at.error();
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = at->wide ? float(static_cast<const double*>(at->data)[i]) : static_cast<const float*>(at->data)[i];
    return {};
  }
  /// As `read`, of many tensors. Where one is refused, those before it have been read.
  result<void> read(std::span<const tensor_read> all) const {
    for (const tensor_read& t : all)
      if (auto r = read(t.what, t.slot, t.out); !r) return r;
    return {};
  }
  /// Whether `read` finds such a tensor.
  bool keeps(tensor_kind what, std::size_t k) const { return isotope::keeps(plan_, what, k); }
  result<void> write(tensor_kind what, std::size_t k, std::span<const float> in) {
    if (what == tensor_kind::parameter) {  // every program takes them, also one that keeps no f32 master to read back
      if (auto r = has_slot(plan_, k, std::int64_t(in.size())); !r) return r;
      if (auto r = within_range(plan_.slots[k], in); !r) return r;
      put_parameters(plan_.slots[k], 0, in.data(), std::int64_t(in.size()));
      pack(plan_.slots[k]);
      return {};
    }
    auto at = find(what, k, std::int64_t(in.size()));
    if (!at) return at.error();
    fresh_ = false;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (at->wide) static_cast<double*>(at->data)[i] = double(in[i]);
      else static_cast<float*>(at->data)[i] = in[i];
    }
    return {};
  }

  /// The elements of an operand of the plan, as they are.
  result<std::vector<float>> numbers(const operand& o) const { return numbers_of(region(o.region) + o.at, o); }
  /// Copies a batch into the inputs, for `run` and `observe`. @error invalid_argument for another size than the plan's
  result<void> put(const batch& b) {
    if (fill_inputs(plan_.inputs, base_, b)) return {};
    return fail(errc::invalid_argument, "the batch has another size than the plan's inputs", "session", "give all inputs whole");
  }

  /// All bytes of a region, for checkers that fill them before a step.
  std::span<std::byte> region_bytes(value_kind k) const { return {region(k), std::size_t(plan_.totals.region[std::size_t(k)])}; }

  std::int64_t planned_bytes() const { return planned_; }
  /// The arena and the tables that the session keeps beside it.
  std::int64_t measured_bytes() const { return arena_.bytes() + train_.table_bytes() + eval_.table_bytes(); }
  const session_counters& counters() const { return counters_; }

  /// The optimiser step of the last update, skipped ones not counted; `step_scalars::optimizer_step = 0` asks for the next one.
  std::int64_t step_count() const { return step_count_; }
  /// Starts the bias correction over, e.g. after the moments were cleared.
  void reset_step() { step_count_ = 0; }
  const plan_view& plan() const { return plan_; }

 private:
  struct place_of {
    void* data = nullptr;
    bool wide = false;
  };
  static constexpr dtype accum = accum_of(T::precision::type);
  static constexpr bool mixed = accum != T::precision::type;

  std::shared_ptr<thread_pool> pool_;
  std::unique_ptr<std::array<dynamic_plan, 2>> owned_;
  plan_view plan_;
  arena arena_;
  step_scalars* scalars_ = nullptr;
  region_bases base_{}, eval_base_{};
  program train_, eval_;
  std::int64_t planned_ = 0, step_count_ = 0;
  session_counters counters_;
  bool no_readback_ = false;
  bool fresh_ = true;  // moments and gradients are as the system's pages came: zeros

  std::byte* region(value_kind k) const { return base_[std::size_t(k)]; }
  bool has_master() const { return plan_.totals.region[std::size_t(value_kind::master)] > 0; }

  /// Stores elements of a parameter from number `at` on, and of its master.
  template <class E> void put_parameters(const slot& s, std::int64_t at, const E* x, std::int64_t n) {
    using storage = typename T::precision::storage;
    const std::int64_t element = s.at + at;
    std::byte* param = region(value_kind::param);
    if (s.type != T::precision::type) {  // a weight stored in 16 bits
      std::byte* to = param + 2 * element;
      if (s.type == dtype::f16) narrow(x, n, reinterpret_cast<float16*>(to));
      else narrow(x, n, reinterpret_cast<bfloat16*>(to));
      return;
    }
    if constexpr (mixed) {
      narrow(x, n, reinterpret_cast<storage*>(param) + element);
      if (has_master()) narrow(x, n, reinterpret_cast<float*>(region(value_kind::master)) + element);
    } else {
      for (std::int64_t i = 0; i < n; ++i) reinterpret_cast<storage*>(param)[element + i] = storage(x[i]);
    }
  }
  /// Makes the packed copy of a parameter anew.
  void pack(const slot& s) {
    if (s.packed < 0) return;
    const auto kernel = find_kernel(kernel_table<T>, &info<op::matmul>, T::precision::type);
    const view weight{region(value_kind::param) + s.at * size_of(s.type), s.dims, dense_strides(s.dims), s.type};
    const float_environment mode(pool_->denormals());
    code_of<T>()[std::size_t(kernel)].pack(weight, region(value_kind::packed) + s.packed, pool_.get());
  }
  template <class E, class To> static void narrow(const E* x, std::int64_t n, To* to) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = To(float(x[i]));
  }
  /// Zeroes a region that something may have been written to.
  void clear(value_kind k) {
    if (fresh_) return;
    constexpr std::int64_t piece = 1 << 20;
    const std::int64_t bytes = plan_.totals.region[std::size_t(k)];
    pool_->parallel((bytes + piece - 1) / piece,
                    [&](std::int64_t t, int) { std::memset(region(k) + t * piece, 0, std::size_t(std::min(piece, bytes - t * piece))); });
  }

  result<place_of> find(tensor_kind what, std::size_t k, std::int64_t length) const {
    auto at = locate(plan_, what, k, length);
    if (!at) return at.error();
    return place_of{region(at->region) + at->at, accum == dtype::f64};
  }

  static double number(std::span<const port> ports, const region_bases& base, std::string_view label) {
    const port* p = find_port(ports, label);
    return p == nullptr ? 0 : number_at(base[std::size_t(p->where.region)] + p->where.at, p->where.type);
  }
  template <class E>
  static result<std::span<E>> port_span(std::span<const port> ports, const region_bases& base, std::string_view label, const char* what) {
    auto p = typed_port(ports, label, std::int64_t(sizeof(E)), what);
    if (!p) return p.error();
    const operand& x = (*p)->where;
    return std::span<E>(reinterpret_cast<E*>(base[std::size_t(x.region)] + x.at), std::size_t(x.dims.count()));
  }
  static bool fill_inputs(std::span<const port> ports, const region_bases& base, const batch& b) {
    if (!fits(ports, b)) return false;
    const auto copy = [&](std::string_view label, std::span<const std::int32_t> from) {
      const port* p = find_port(ports, label);
      if (p != nullptr && !from.empty()) std::memcpy(base[std::size_t(p->where.region)] + p->where.at, from.data(), from.size_bytes());
    };
    copy("tokens", b.tokens);
    copy("targets", b.targets);
    return true;
  }
};

}  // namespace arch
}  // namespace isotope::cpu
