#pragma once
/// Repeats a recorded run and keeps what a comparison needs: losses, norms, the first gradients, the last weights.
#include <isotope/core/device.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/train/recorded_run.hpp>
#include <isotope/train/session.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace isotope::train {

/// What the session of a replay must support: one batch of windows per step, without accumulation.
template <class S>
concept CanReplay = HasParameters<S> && CanInitialize<S> && CanStep<S> && CanRead<S> && CanWrite<S>;

struct replayed_parameter {
  named_dims is;
  std::vector<float> first_gradient, weight;  // of step 1, before clipping; after the last step
};
struct replayed_run {
  std::vector<float> loss, grad_norm;  // (steps): mean cross entropy in nats; global norm before clipping
  std::vector<replayed_parameter> parameters;
};

/// Returns the loss that a recorded run trains.
inline model::gpt_loss_of loss_of(const recorded_run& r) { return {r.size, int(r.batch), int(r.length)}; }

/// Returns the parameters of a model on a target, in the order of its state dict. Nothing is planned, so absurd sizes cost nothing.
/// @error invalid_model
template <Target T, class Model> result<std::vector<named_dims>> parameters_of(const Model& model) {
  const trace g = traced_inference<T>(model, false);
  if (!g.error.empty()) return diagnosed(errc::invalid_model, std::string(g.error.view()));
  std::vector<named_dims> out;
  for (const parameter& p : g.params) {
    named_dims d{std::string(p.path.view()), {}};
    const shape& dims = g.values[std::size_t(p.value)].dims;
    for (int i = 0; i < dims.rank; ++i) d.dims.push_back(dims[i]);
    out.push_back(std::move(d));
  }
  return out;
}

/// Trains the session, which must be planned for loss_of(r), from the recorded weights on the recorded tokens.
///
/// @error as check_weights, read, write and status_of; non_finite: the loss or norm of a step is not a number, with its figures
template <CanReplay S> result<replayed_run> replay(S& session, const recorded_run& r) {
  replayed_run out;
  const auto& slots = session.parameters();
  std::vector<named_dims> model;
  for (const auto& slot : slots) {
    named_dims d{std::string(std::string_view(slot.path)), {}};
    for (int i = 0; i < slot.dims.rank; ++i) d.dims.push_back(slot.dims[i]);
    model.push_back(std::move(d));
  }
  if (auto fits = check_weights(r, model); !fits) return std::move(fits).error();
  session.initialize(0);  // zeroes the moments
  std::vector<float> values;
  for (std::size_t k = 0; k < model.size(); ++k) {
    const io::tensor_entry* t = r.file.find(model[k].name);
    values.resize(std::size_t(t->elems()));
    if (auto read = r.file.read_f32(*t, values); !read) return std::move(read).error();
    if (auto put = session.write(tensor_kind::parameter, k, values); !put) return std::move(put).error();
    out.parameters.push_back({model[k], {}, {}});
  }

  const auto keep = [&](tensor_kind kind, std::vector<float> replayed_parameter::* where) -> result<void> {
    for (std::size_t k = 0; k < out.parameters.size(); ++k) {
      std::vector<float>& to = out.parameters[k].*where;
      to.resize(std::size_t(slots[k].dims.count()));
      if (auto read = session.read(kind, k, to); !read) return read;
    }
    return {};
  };
  step_scalars x = r.scalars;
  for (std::int64_t step = 0; step < r.steps; ++step) {
    x.optimizer_step = step + 1;
    x.counter = std::uint64_t(step);
    const recorded_step data = step_of(r, step);
    const batch one{data.tokens, data.targets};
    const step_report report = session.step(std::span<const batch>(&one, 1), x);
    if (auto status = status_of(session); !status) return std::move(status).error();
    if (report.skipped)
      return fail(errc::non_finite,
                  "step " + std::to_string(step + 1) + " of " + std::to_string(r.steps) + " has loss " + io::number_text(report.loss) +
                      " and gradient norm " + io::number_text(report.grad_norm),
                  r.path, "lower the learning rate");
    out.loss.push_back(float(report.loss));
    out.grad_norm.push_back(float(report.grad_norm));
    if (step == 0)
      if (auto kept = keep(tensor_kind::gradient, &replayed_parameter::first_gradient); !kept) return std::move(kept).error();
  }
  if (auto kept = keep(tensor_kind::parameter, &replayed_parameter::weight); !kept) return std::move(kept).error();
  return out;
}

/// Writes `loss`, `grad_norm`, `grad1.<name>` and `final.<name>` as F32, whole or not at all. @error as io::write_safetensors
inline result<void> write_replayed_run(const std::string& path, const replayed_run& r, const io::text_pairs& metadata) {
  std::vector<io::stored_tensor> tensors;
  const auto add = [&](std::string name, std::vector<std::int64_t> dims, const std::vector<float>& values) {
    tensors.push_back({std::move(name), io::f32_elements, std::move(dims), std::as_bytes(std::span(values))});
  };
  const auto steps = std::int64_t(r.loss.size());
  add("loss", {steps}, r.loss);
  add("grad_norm", {steps}, r.grad_norm);
  for (const replayed_parameter& p : r.parameters) add("grad1." + p.is.name, p.is.dims, p.first_gradient);
  for (const replayed_parameter& p : r.parameters) add("final." + p.is.name, p.is.dims, p.weight);
  return io::write_safetensors(path, tensors, metadata);
}

}  // namespace isotope::train
