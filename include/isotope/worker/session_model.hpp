#pragma once
/// A session of plans as a model of a device worker: everything by name, in plain values.
#include <cmath>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../backend/session/session.hpp"
#include "loaded_model.hpp"
#include "typed_batch.hpp"
#include "weights.hpp"

namespace isotope::worker {

/// `Session` is a session of any backend.
template <class Session> class session_model final : public loaded_model {
 public:
  explicit session_model(Session loaded) : session_(std::move(loaded)) {}
  static result<std::unique_ptr<loaded_model>> make(result<Session> loaded) {
    if (!loaded) return std::move(loaded).error();
    return std::unique_ptr<loaded_model>(std::make_unique<session_model>(*std::move(loaded)));
  }

  loaded describe() const override {
    loaded r;
    for (const slot& s : session_.parameters()) r.parameters.push_back(worker::shape_of(std::string(s.path.view()), s.dims, s.type));
    for (const port& p : session_.states()) r.states.push_back(shape_of(p));
    for (std::size_t k = 0; k < session_.plans().size(); ++k) {
      loaded_plan_info info{session_.plans()[k], {}, {}};
      for (const port& p : session_.plan(k).inputs) info.inputs.push_back(shape_of(p));
      for (const port& p : session_.plan(k).outputs) info.outputs.push_back(shape_of(p));
      r.plans.push_back(std::move(info));
    }
    r.planned_bytes = session_.planned_bytes();
    r.measured_bytes = session_.measured_bytes();
    return r;
  }
  result<void> initialize(std::uint64_t seed) override {
    session_.initialize(seed);
    return session_.status();
  }
  result<void> write(worker::write& job) override {
    if (const auto* all = std::get_if<std::vector<tensor_values>>(&job.from)) {
      for (const tensor_values& t : *all) {
        const auto k = find(job.what, t.name);
        if (!k) return k.error();
        if (auto r = session_.write(job.what, *k, t.values); !r) return r;
      }
      return {};
    }
    if (job.what != tensor_kind::parameter)
      return fail(errc::invalid_argument, "files and sources hold parameters", "write", "give other tensors as values");
    if (const auto* file = std::get_if<weights_file>(&job.from)) return write_file(session_, *file);
    return write_from(session_, std::get<weight_source>(job.from));
  }
  result<std::vector<tensor_values>> read(const worker::read& job) override {
    std::vector<tensor_values> all;
    std::vector<tensor_read> wanted;
    if (job.names.empty()) {
      for (std::size_t k = 0; k < tensors(job.what); ++k)
        if (session_.keeps(job.what, k)) wanted.push_back({job.what, k, {}});
    } else {
      for (const std::string& label : job.names) {
        const auto k = find(job.what, label);
        if (!k) return k.error();
        wanted.push_back({job.what, *k, {}});
      }
    }
    for (const tensor_read& t : wanted) all.push_back({name_of_tensor(t), std::vector<float>(elems_of(t))});
    for (std::size_t i = 0; i < all.size(); ++i) wanted[i].out = all[i].values;
    if (auto r = session_.read(wanted); !r) return std::move(r).error();
    return all;
  }
  result<step_report> step(worker::step& job) override {
    if (job.micro_batches.empty() || (job.micro_batches.size() > 1 && !accumulates(session_.plan())))
      return fail(errc::invalid_argument, std::to_string(job.micro_batches.size()) + " micro-batches for a plan that takes one", "step",
                  "plan with training_options::accumulate for several");
    std::vector<typed_batch> batches;
    for (auto& given : job.micro_batches) {
      auto b = typed_batch::make(session_.plan().inputs, std::move(given));
      if (!b) return std::move(b).error();
      batches.push_back(*std::move(b));
    }
    const step_report report = session_.step(std::span<const typed_batch>(batches), job.scalars);
    if (auto r = session_.status(); !r) return std::move(r).error();
    return report;
  }
  result<double> evaluate(worker::evaluate& job) override {
    const auto which = session_.find(Session::evaluation_name);
    if (!which) return which.error();
    auto batch = typed_batch::make(session_.plan(*which).inputs, std::move(job.batch));
    if (!batch) return std::move(batch).error();
    const double loss = session_.evaluate(*batch);
    if (auto r = session_.status(); !r) return std::move(r).error();
    return loss;
  }
  result<std::vector<named_numbers>> decode(worker::decode& job) override {
    std::size_t which = 0;
    if (!job.plan.empty()) {
      const auto found = session_.find(job.plan);
      if (!found) return found.error();
      which = *found;
    }
    if (session_.plans()[which] == "training" || job.times < 1)
      return fail(errc::invalid_argument,
                  job.times < 1 ? "the plan is to run " + std::to_string(job.times) + " times" : std::string("the plan trains"), "decode",
                  "give a plan of inference, and run it once or more");
    auto batch = typed_batch::make(session_.plan(which).inputs, std::move(job.inputs), true);
    if (!batch) return std::move(batch).error();
    result<void> done;
    batch->each_input([&](std::string_view label, auto from) {
      if (done) done = session_.set(label, from, which);
    });
    if (done) done = job.times == 1 ? session_.run_plan(which, job.scalars) : session_.run_plan_times(which, job.times, job.scalars);
    if (!done) return std::move(done).error();
    std::vector<named_numbers> all;
    if (job.outputs.empty())
      for (const port& p : session_.plan(which).outputs) job.outputs.emplace_back(p.label.view());
    for (const std::string& label : job.outputs) {
      auto values = output(which, label);
      if (!values) return std::move(values).error();
      all.push_back({label, *std::move(values)});
    }
    return all;
  }
  result<void> clear_states() override {
    session_.clear_states();
    return session_.status();
  }

 private:
  Session session_;

  static named_shape shape_of(const port& p) { return worker::shape_of(std::string(p.label.view()), p.where.dims, p.where.type); }
  std::size_t tensors(tensor_kind what) const {
    return what == tensor_kind::state ? session_.states().size() : session_.parameters().size();
  }
  std::string name_of_tensor(const tensor_read& t) const {
    return std::string(t.what == tensor_kind::state ? session_.states()[t.slot].label.view() : session_.parameters()[t.slot].path.view());
  }
  std::size_t elems_of(const tensor_read& t) const {
    return std::size_t((t.what == tensor_kind::state ? session_.states()[t.slot].where.dims : session_.parameters()[t.slot].dims).count());
  }
  /// @error not_found
  result<std::size_t> find(tensor_kind what, std::string_view label) const {
    for (std::size_t k = 0; k < tensors(what); ++k)
      if (name_of_tensor({what, k, {}}) == label) return k;
    return fail(errc::not_found, "the model has no such " + std::string(what == tensor_kind::state ? "state" : "parameter"),
                std::string(label), "ask for one that the load job's reply names");
  }
  result<numbers> output(std::size_t which, const std::string& label) {
    const port* p = find_port(session_.plan(which).outputs, label);
    if (p == nullptr) return typed_port(session_.plan(which).outputs, label, 0, "output").error();
    switch (p->where.type) {
      case dtype::f32: return values<float, float>(which, label);
      case dtype::f64: return values<double, float>(which, label);
      case dtype::bf16: return values<bfloat16, float>(which, label);
      case dtype::f16: return values<float16, float>(which, label);
      case dtype::i32: return values<std::int32_t, std::int32_t>(which, label);
      default: break;
    }
    return fail(errc::invalid_argument, "the output holds " + std::string(name_of(p->where.type)), label,
                "cast it in the model to i32 or f32");
  }
  template <class E, class To> result<numbers> values(std::size_t which, const std::string& label) {
    const auto x = session_.template output<E>(label, which);
    if (!x) return x.error();
    std::vector<To> y;
    y.reserve(x->size());
    for (const E v : *x) y.push_back(To(v));
    return numbers(std::move(y));
  }
};

}  // namespace isotope::worker
