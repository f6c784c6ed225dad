#pragma once
/// Runs one plan on every rank of a mesh, each on a thread with its own device and session.
#include "rank_threads.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/model/all.hpp>
#include <isotope/plan/dynamic.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace dist_test {

using namespace isotope;
using f32_target = target<backend::cpu, precision::f32, kernels::portable>;
using bf16_target = target<backend::cpu, precision::bf16, kernels::portable>;

template <class T> using session_of = typename device<T>::session;

/// A rank while its session lives.
template <class T> struct rank {
  session_of<T>& session;
  mesh_position at;
  thread_rank &tensor, &data;
};

/// The groups of a mesh as threads. `tensor(d, t)` joins rank t of the tensor group of data index d, `data(d, t)` rank d of a data group.
struct thread_groups {
  std::vector<thread_group> tensor_groups, data_groups;
  explicit thread_groups(const device_mesh& m) {
    for (int d = 0; d < m.data; ++d) tensor_groups.emplace_back(m.tensor);
    for (int t = 0; t < m.tensor; ++t) data_groups.emplace_back(m.data);
  }
  auto tensor(int d, int t) { return tensor_groups[std::size_t(d)].join(t); }
  auto data(int d, int t) { return data_groups[std::size_t(t)].join(d); }
};

/// Calls work(rank) on every rank of a mesh at the same time. Does nothing where there is no plan.
template <class T, class Groups = thread_groups, class Work>
void on_mesh(const device_mesh& m, const std::vector<owned_plan>& plans, const Work& work) {
  for (const auto& p : plans)
    if (p.plan.steps.empty()) return;
  Groups groups(m);
  const auto one = [&](int d, int t) {
    auto in_tensor = groups.tensor(d, t);
    ASSERT_TRUE(in_tensor.ok()) << in_tensor.error().line();
    auto in_data = groups.data(d, t);
    ASSERT_TRUE(in_data.ok()) << in_data.error().line();
    thread_rank tensor(*std::move(in_tensor)), data(*std::move(in_data));
    auto opened = device<T>::open({.threads = 1});
    ASSERT_TRUE(opened.ok());
    opened->join({&tensor, &data});
    auto s = opened->load(plans);
    ASSERT_TRUE(s.ok()) << s.error().line();
    s->initialize(7);
    work(rank<T>{*s, {d, t}, tensor, data});
  };
  std::vector<std::thread> threads;
  for (int d = 0; d < m.data; ++d)
    for (int t = 0; t < m.tensor; ++t) threads.emplace_back(one, d, t);
  for (auto& t : threads) t.join();
}
template <class T, class Groups = thread_groups, class Work>
void on_mesh(const device_mesh& m, const dynamic_plan& plan, const Work& work) {
  on_mesh<T, Groups>(m, std::vector<owned_plan>{{"training", plan}}, work);
}
template <class T, class Model> dynamic_plan planned(const Model& model, const training_options& o) {
  auto p = plan_training<T>(model, o);
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().line());
  return p.ok() ? *std::move(p) : dynamic_plan{};
}

using tensors = std::map<std::string, std::vector<float>>;

/// Puts the pieces that rank `tensor` has of each tensor into whole ones.
template <class T> void collect(session_of<T>& s, tensor_kind what, int tensor, tensors& to) {
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    const slot& p = s.parameters()[k];
    if (!s.keeps(what, k)) continue;
    std::vector<float> here(std::size_t(p.dims.count()));
    ASSERT_TRUE(s.read(what, k, here).ok());
    auto& whole = to[std::string(p.path.view())];
    whole.resize(std::size_t(p.pieces.whole(p.dims).count()));
    for_piece_runs(p, tensor, [&](const piece_run& r) { std::copy_n(here.begin() + r.here, r.count, whole.begin() + r.whole); });
  }
}

/// |a - b| / |b|; NaN counts as infinite.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double d = 0, n = 0;
  if (a.size() != b.size()) return HUGE_VAL;
  for (std::size_t i = 0; i < a.size(); ++i) d += std::pow(double(a[i]) - double(b[i]), 2), n += std::pow(double(b[i]), 2);
  const double r = n == 0 ? std::sqrt(d) : std::sqrt(d / n);
  return r <= HUGE_VAL ? r : HUGE_VAL;
}
inline void expect_close(const tensors& a, const tensors& b, double most) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [path, x] : b) {
    ASSERT_TRUE(a.contains(path)) << path;
    EXPECT_TRUE(distance(a.at(path), x) <= most) << path << ": " << distance(a.at(path), x);
  }
}

/// Rows [first, first + rows) of the batch of a step, of sequences in which each token follows from the one before it; some targets do not count.
template <class Session> void fill_rows(Session& s, std::int64_t first, std::int64_t rows, int vocab, int step, bool counts_all = false) {
  const auto tokens = *s.template input<std::int32_t>("tokens"), targets = *s.template input<std::int32_t>("targets");
  const std::int64_t length = std::int64_t(tokens.size()) / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t t = (first + r) * 13 + step * 5 + 1;
    for (std::int64_t i = 0; i < length; ++i) {
      const auto at = std::size_t(r * length + i);
      tokens[at] = std::int32_t(t % vocab);
      t = t * 7 + 3 + (t % 5 == 0);
      targets[at] = !counts_all && (i + r) % 7 == 5 ? -1 : std::int32_t(t % vocab);
      t %= 100003;
    }
  }
}
inline step_scalars scalars(int step) {
  step_scalars x;
  x.seed = 99;
  x.counter = std::uint64_t(step);
  x.learning_rate = 0.003f;
  x.weight_decay = 0.1f;
  x.clip_norm = 1;
  x.optimizer_step = step;
  return x;
}

}  // namespace dist_test
