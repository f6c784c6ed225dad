// Training on two GPUs, through NCCL and directly, gives what one GPU gives. Skipped where there are not two GPUs, NCCL and its choices, or access to each
// other's memory.
#include <isotope/backend/cuda.hpp>
#include <isotope/comm/cuda/direct_group.hpp>
#include <isotope/comm/cuda/nccl_group.hpp>
#include <isotope/comm/mesh.hpp>
#include <isotope/model/all.hpp>
#include <isotope/plan/dynamic.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpu_ranks.hpp"

namespace cuda_mesh {

using namespace isotope;
using f32_target = target<backend::cuda, precision::f32>;
using bf16_target = target<backend::cuda, precision::bf16>;
using tensors = std::map<std::string, std::vector<float>>;

struct trained {
  tensors gradients;  // of the first step
  std::vector<double> losses;
  friend bool operator==(const trained&, const trained&) = default;
};
constexpr model::gpt size{2, 4, 256, 1000, 64};
constexpr int rows = 4, steps = 20;

template <class Session> void fill(Session& s, std::int64_t first, int step) {
  const auto tokens = *s.template input<std::int32_t>("tokens"), targets = *s.template input<std::int32_t>("targets");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int64_t t = (first * size.context + std::int64_t(i)) * 7 + step * 5;
    tokens[i] = std::int32_t(t % size.vocab);
    targets[i] = std::int32_t((t * 3 + 1) % size.vocab);
  }
}
template <class Session> void collect(Session& s, int tensor, tensors& to) {
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    const slot& p = s.parameters()[k];
    if (!s.keeps(tensor_kind::gradient, k)) continue;
    std::vector<float> here(std::size_t(p.dims.count()));
    ASSERT_TRUE(s.read(tensor_kind::gradient, k, here).ok());
    auto& whole = to[std::string(p.path.view())];
    whole.resize(std::size_t(p.pieces.whole(p.dims).count()));
    for_piece_runs(p, tensor, [&](const piece_run& r) { std::copy_n(here.begin() + r.here, r.count, whole.begin() + r.whole); });
  }
}

enum class by { nccl, direct };
using join_function = std::function<result<mesh_communicators>(int rank)>;
template <class Group, class Make>
join_function joining_of(const device_mesh& mesh, const std::vector<gpu_of_rank>& devices, const Make& make) {
  const auto groups = std::make_shared<mesh_group<Group>>(mesh, [&](const std::string&, const std::vector<int>& members) {
    return make(std::make_unique<thread_group>(int(members.size()), thread_group_options{.timeout_seconds = 60}),
                [&devices, members](int rank) { return devices[std::size_t(members[std::size_t(rank)])]; });
  });
  return [groups](int rank) { return groups->join(rank); };
}
/// How ranks join the groups of a mesh, when `devices` has their GPUs.
join_function joining(const device_mesh& mesh, const std::vector<gpu_of_rank>& devices, by how) {
  if (how == by::direct) {
    using group = direct_group<thread_group>;
    return joining_of<group>(
        mesh, devices, [](auto host, auto device_of) { return std::make_unique<group>(std::move(host), direct_options{60}, device_of); });
  }
  using group = nccl_group<thread_group>;
  const auto found = cuda_test::gpu_ranks::open();
  const auto settings = nccl_settings::from(cuda_test::nccl_environment());
  return joining_of<group>(mesh, devices, [&](auto host, auto device_of) {
    return std::make_unique<group>(std::move(host), nccl_options{found->library, *settings, 60}, device_of);
  });
}

/// Trains on a mesh of GPUs; each data index has rows / data rows of a step.
template <class T> trained train(const device_mesh& mesh, int zero = 0, by how = by::nccl, double dropout = 0) {
  training_options o;
  o.mesh = mesh;
  o.zero = zero;
  o.bucket_bytes = 256 << 10;
  model::gpt dropping = size;
  dropping.dropout = dropout;
  auto plan = plan_training<T>(model::gpt_loss_of{dropping, rows / mesh.data, size.context}, o);
  trained all;
  if (!plan.ok()) return ADD_FAILURE() << plan.error().line(), all;
  std::vector<gpu_of_rank> devices(std::size_t(mesh.ranks()));
  const auto join = joining(mesh, devices, how);
  std::mutex one;
  std::vector<std::thread> ranks;
  for (int r = 0; r < mesh.ranks(); ++r)
    ranks.emplace_back([&, r] {
      const mesh_position at = mesh.position_of(r);
      auto d = device<T>::open({.name = std::to_string(r)});
      ASSERT_TRUE(d.ok()) << d.error().line();
      const auto& c = d->shared();
      devices[std::size_t(r)] = {c->library(), c->handle(), c->stream()};
      auto ends = join(r);
      ASSERT_TRUE(ends.ok()) << ends.error().line();
      d->join(ends->groups());
      auto s = d->load(*plan);
      ASSERT_TRUE(s.ok()) << s.error().line();
      s->initialize(7);
      for (int i = 1; i <= steps; ++i) {
        fill(*s, std::int64_t(at.data) * (rows / mesh.data), i);
        step_scalars x;
        x.counter = std::uint64_t(i), x.optimizer_step = i;
        x.learning_rate = 0.003f, x.weight_decay = 0.1f, x.clip_norm = 1;
        const auto report = s->run(x, phase_first | phase_last);
        EXPECT_TRUE(s->status().ok()) << s->status().error().line();
        const std::lock_guard lock(one);
        if (i == 1 && zero == 0) collect(*s, at.tensor, all.gradients);
        if (r == 0) all.losses.push_back(report.loss);
      }
    });
  for (auto& t : ranks) t.join();
  return all;
}
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double d = 0, n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) d += std::pow(double(a[i]) - double(b[i]), 2), n += std::pow(double(b[i]), 2);
  return std::sqrt(n == 0 ? d : d / n);
}
void expect_close(const trained& a, const trained& b, double gradients, double losses) {
  for (const auto& [path, g] : a.gradients) EXPECT_LE(distance(g, b.gradients.at(path)), gradients) << path;
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i], b.losses[i], losses * b.losses[i]) << "step " << i;
}

class cuda_mesh : public testing::TestWithParam<by> {
 protected:
  void SetUp() override {
    if (const auto found = cuda_test::gpu_ranks::open(GetParam() == by::direct); !found) GTEST_SKIP() << found.error().line();
    if (const auto s = nccl_settings::from(cuda_test::nccl_environment()); !s && GetParam() == by::nccl) GTEST_SKIP() << s.error().line();
  }
  template <class T> static trained on_mesh(const device_mesh& mesh, int zero = 0, double dropout = 0) {
    return train<T>(mesh, zero, GetParam(), dropout);
  }
  template <class T> static trained on_one(double dropout = 0) { return on_mesh<T>({1, 1}, 0, dropout); }
};

TEST_P(cuda_mesh, two_replicas_train_as_one_gpu_with_all_rows) {
  expect_close(on_mesh<f32_target>({2, 1}), on_one<f32_target>(), 1e-5, 1e-4);
  expect_close(on_mesh<bf16_target>({2, 1}), on_one<bf16_target>(), 3e-2, 1e-2);
}
TEST_P(cuda_mesh, two_gpus_that_share_each_layer_train_as_one) {
  expect_close(on_mesh<f32_target>({1, 2}), on_one<f32_target>(), 1e-5, 1e-4);
  expect_close(on_mesh<bf16_target>({1, 2}), on_one<bf16_target>(), 3e-2, 1e-2);
}
// Numbers are dropped by their places among those of all GPUs, in sums of branches, in embeddings and in the probabilities of attention.
TEST_P(cuda_mesh, two_gpus_drop_what_one_gpu_drops) {
  const auto f32 = on_one<f32_target>(0.1), bf16 = on_one<bf16_target>(0.1);
  EXPECT_NE(f32.losses, on_one<f32_target>().losses);
  for (const device_mesh& mesh : {device_mesh{1, 2}, device_mesh{2, 1}}) {
    expect_close(on_mesh<f32_target>(mesh, 0, 0.1), f32, 1e-5, 1e-4);
    expect_close(on_mesh<bf16_target>(mesh, 0, 0.1), bf16, 3e-2, 1e-2);
  }
}
TEST_P(cuda_mesh, zero_1_gives_the_losses_of_plain_replicas) {
  EXPECT_EQ(on_mesh<f32_target>({2, 1}, 1).losses, on_mesh<f32_target>({2, 1}).losses);
  EXPECT_EQ(on_mesh<bf16_target>({2, 1}, 1).losses, on_mesh<bf16_target>({2, 1}).losses);
}
TEST_P(cuda_mesh, a_run_repeats_bit_for_bit) {
  EXPECT_EQ(on_mesh<bf16_target>({2, 1}), on_mesh<bf16_target>({2, 1}));
  EXPECT_EQ(on_mesh<bf16_target>({1, 2}), on_mesh<bf16_target>({1, 2}));
}
INSTANTIATE_TEST_SUITE_P(communicators, cuda_mesh, testing::Values(by::nccl, by::direct),
                         [](const auto& of) { return std::string(of.param == by::nccl ? "nccl" : "direct"); });

/// Needs no GPU: plans of every mesh take dropout, in layers and in attention.
TEST(cuda_mesh_plan, takes_dropout) {
  model::gpt dropping = size;
  dropping.dropout = 0.1;
  for (const device_mesh& mesh : {device_mesh{2, 1}, device_mesh{1, 2}, device_mesh{2, 2}}) {
    training_options o;
    o.mesh = mesh;
    const auto f32 = plan_training<f32_target>(model::gpt_loss_of{dropping, 2, size.context}, o);
    EXPECT_TRUE(f32.ok()) << f32.error().line();
    const auto bf16 = plan_training<bf16_target>(model::gpt_loss_of{dropping, 2, size.context}, o);
    EXPECT_TRUE(bf16.ok()) << bf16.error().line();
  }
}

/// A sum of two numbers has no order, so NCCL gives its bits, too.
TEST(cuda_mesh_of_both, two_ranks_give_the_bits_of_nccl) {
  if (const auto found = cuda_test::gpu_ranks::open(true); !found) GTEST_SKIP() << found.error().line();
  if (const auto found = cuda_test::gpu_ranks::open(); !found) GTEST_SKIP() << found.error().line();
  if (const auto s = nccl_settings::from(cuda_test::nccl_environment()); !s) GTEST_SKIP() << s.error().line();
  EXPECT_EQ(train<bf16_target>({2, 1}, 0, by::direct), train<bf16_target>({2, 1}, 0, by::nccl));
  EXPECT_EQ(train<bf16_target>({1, 2}, 0, by::direct), train<bf16_target>({1, 2}, 0, by::nccl));
}

}  // namespace cuda_mesh
