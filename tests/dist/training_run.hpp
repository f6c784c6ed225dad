#pragma once
/// Training runs on meshes, and what they leave.
#include "on_mesh.hpp"

#include <mutex>

namespace dist_test {

struct trained {
  tensors gradients, weights;  // gradients: of the first step
  std::vector<double> losses, norms;
  std::vector<int> tensor_calls, data_calls;  // collectives of a step on rank 0: all_reduce, all_gather and pieces, reduce_scatter
  friend bool operator==(const trained&, const trained&) = default;
};

struct training_run {
  training_options options;
  int steps = 1;
  int micro = 1;           // micro-batches of each data index
  bool counts_all = true;  // every target is a class
};

/// Bits of the parameters as kernels read them, as numbers.
template <class T> void collect_weights(session_of<T>& s, int tensor, tensors& to) {
  for (const slot& p : s.parameters()) {
    operand o{.at = p.at * size_of(p.type),
              .bytes = p.dims.count() * size_of(p.type),
              .dims = p.dims,
              .strides = dense_strides(p.dims),
              .type = p.type,
              .region = value_kind::param};
    const auto here = *s.numbers(o);
    auto& whole = to[std::string(p.path.view())];
    whole.resize(std::size_t(p.pieces.whole(p.dims).count()));
    for_piece_runs(p, tensor, [&](const piece_run& r) { std::copy_n(here.begin() + r.here, r.count, whole.begin() + r.whole); });
  }
}

/// Trains a token model on rows that depend on the step alone: data index d has rows [d B, (d + 1) B) of each global micro-batch.
template <class T, class Model> trained train_on_mesh(const Model& model, const training_run& run) {
  trained all;
  std::mutex one_at_a_time;
  on_mesh<T>(run.options.mesh, planned<T>(model, run.options), [&](rank<T> k) {
    const int data = run.options.mesh.data;
    for (int i = 1; i <= run.steps; ++i) {
      step_report report;
      const auto before = k.tensor.calls(), data_before = k.data.calls();
      for (int m = 0; m < run.micro; ++m) {
        fill_rows(k.session, (m * data + k.at.data) * model.batch, model.batch, model.size.vocab, i, run.counts_all);
        step_scalars x = scalars(i);
        x.gradient_scale = 1.0f / float(run.micro);
        report = k.session.run(x, std::uint8_t((m == 0 ? phase_first : phase_later) | (m + 1 == run.micro ? phase_last : 0)));
      }
      const std::lock_guard lock(one_at_a_time);
      if (i == 1 && run.options.zero == 0) collect<T>(k.session, tensor_kind::gradient, k.at.tensor, all.gradients);
      if (k.at == mesh_position{}) all.losses.push_back(report.loss / run.micro), all.norms.push_back(report.grad_norm);
      if (k.at == mesh_position{} && i == 1) {
        all.tensor_calls = k.tensor.calls_since(before);
        all.data_calls = k.data.calls_since(data_before);
      }
      EXPECT_TRUE(k.session.status().ok());
      EXPECT_FALSE(report.skipped);
    }
    const std::lock_guard lock(one_at_a_time);
    collect_weights<T>(k.session, k.at.tensor, all.weights);
  });
  return all;
}

/// The numbers of b within these relative distances; gradients of a are `times` those of b.
inline void expect_same_training(trained a, const trained& b, double gradients = 1e-5, double losses = 1e-4, float times = 1) {
  for (auto& [path, g] : a.gradients)
    for (float& x : g) x /= times;
  if (!a.gradients.empty()) expect_close(a.gradients, b.gradients, gradients);
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < b.losses.size(); ++i) {
    EXPECT_TRUE(std::fabs(a.losses[i] - b.losses[i]) <= losses * b.losses[i])
        << "step " << i << ": " << a.losses[i] << " and " << b.losses[i];
    EXPECT_TRUE(std::fabs(a.norms[i] - b.norms[i]) <= 10 * losses * b.norms[i])
        << "step " << i << ": norm " << a.norms[i] << " and " << b.norms[i];
  }
}
/// The same bits of weights, losses and norms.
inline void expect_same_bits(const trained& a, const trained& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  for (const auto& [path, x] : b.weights) EXPECT_EQ(a.weights.at(path), x) << path;
}

inline training_options mesh_of(int data, int tensor, int zero = 0) {
  training_options o;
  o.mesh = {data, tensor};
  o.zero = zero;
  o.bucket_bytes = 16 << 10;  // several buckets for small models
  return o;
}

}  // namespace dist_test
