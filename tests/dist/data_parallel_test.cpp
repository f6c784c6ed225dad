// Data parallelism and ZeRO-1: several replicas on different rows give what one device gives on all of them.
#include "training_run.hpp"

using namespace dist_test;

namespace data_parallel_test {

constexpr model::gpt size{2, 4, 32, 65, 16, 0.1};
constexpr model::gpt_loss_of gpt{size, 2, 16};
constexpr model::gpt_loss_of batch_of(int rows, double dropout = 0.1) {
  model::gpt s = size;
  s.dropout = dropout;
  return {s, rows, 16};
}

// Dropout counts rows of all replicas, so that it drops the same.
TEST(data_parallel, gives_two_replicas_with_dropout_the_training_of_one_device_with_all_rows) {
  const auto one = train_on_mesh<f32_target>(batch_of(6), {mesh_of(1, 1), 50});
  expect_same_training(train_on_mesh<f32_target>(batch_of(3), {mesh_of(2, 1), 50}), one);
  expect_same_training(train_on_mesh<f32_target>(batch_of(2), {mesh_of(3, 1), 50}), one);
}

TEST(data_parallel, gives_two_replicas_with_two_micro_batches_the_training_of_four_micro_batches) {
  auto o = mesh_of(1, 1), two = mesh_of(2, 1);
  o.accumulate = two.accumulate = true;
  const auto four = train_on_mesh<f32_target>(batch_of(2, 0), {o, 20, 4});
  // The gradients of a replica's micro-batches are added up, those of replicas averaged.
  expect_same_training(train_on_mesh<f32_target>(batch_of(2, 0), {two, 20, 2}), four, 1e-5, 1e-4, 0.5f);
}

TEST(data_parallel, gives_zero_1_the_bits_of_plain_data_parallelism) {
  for (const int tensor : {1, 2})
    for (const bool accumulate : {false, true}) {
      auto plain = mesh_of(2, tensor), zero = mesh_of(2, tensor, 1);
      plain.accumulate = zero.accumulate = accumulate;
      const int micro = accumulate ? 2 : 1;
      expect_same_bits(train_on_mesh<f32_target>(gpt, {zero, 8, micro}), train_on_mesh<f32_target>(gpt, {plain, 8, micro}));
      expect_same_bits(train_on_mesh<bf16_target>(gpt, {zero, 8, micro}), train_on_mesh<bf16_target>(gpt, {plain, 8, micro}));
    }
}
TEST(data_parallel, gives_zero_1_the_bits_of_plain_data_parallelism_with_sgd_clipping_by_value_frozen_weights_and_learning_rates) {
  for (const auto kind : {optimizer_kind::adamw, optimizer_kind::sgd}) {
    auto plain = mesh_of(3, 1);
    plain.optimizer = kind;
    plain.clip = clipping::value;
    plain.group = [](std::string_view path, const shape&, param_group g) {
      g.trainable = path != "wpe.weight";
      g.rate_scale = path.starts_with("h.1") ? 0.5 : 1;
      return g;
    };
    auto zero = plain;
    zero.zero = 1;
    expect_same_bits(train_on_mesh<f32_target>(gpt, {zero, 6}), train_on_mesh<f32_target>(gpt, {plain, 6}));
    expect_same_bits(train_on_mesh<bf16_target>(gpt, {zero, 6}), train_on_mesh<bf16_target>(gpt, {plain, 6}));
  }
}

TEST(data_parallel, joins_tensor_parallelism) {
  const auto one = train_on_mesh<f32_target>(batch_of(4), {mesh_of(1, 1), 20});
  expect_same_training(train_on_mesh<f32_target>(gpt, {mesh_of(2, 2), 20}), one);
  expect_same_training(train_on_mesh<f32_target>(gpt, {mesh_of(2, 2, 1), 20}), one);
  constexpr model::llama grouped{2, 4, 2, 32, 8, 48, 65, 32, 1e-5, 10000};
  const auto llama = train_on_mesh<f32_target>(model::llama_loss_of{grouped, 4, 16}, {mesh_of(1, 1), 5});
  expect_same_training(train_on_mesh<f32_target>(model::llama_loss_of{grouped, 2, 16}, {mesh_of(2, 2, 1), 5}), llama);
}
TEST(data_parallel, joins_muon_and_clipping_of_each_tensor) {
  auto two = mesh_of(2, 1), one = mesh_of(1, 1);
  two.optimizer = one.optimizer = optimizer_kind::muon;
  two.clip = one.clip = clipping::tensor_norm;
  expect_same_training(train_on_mesh<f32_target>(gpt, {two, 5}), train_on_mesh<f32_target>(batch_of(4), {one, 5}));
}
TEST(data_parallel, joins_recomputation_and_chunks_of_the_head) {
  auto o = mesh_of(2, 2, 1), plain = mesh_of(1, 1);
  o.recompute = plain.recompute = recompute::all;
  o.head = plain.head = head::in_chunks(2);
  expect_same_training(train_on_mesh<f32_target>(gpt, {o, 5}), train_on_mesh<f32_target>(batch_of(4), {plain, 5}));
}

TEST(data_parallel, gives_the_same_bits_again) {
  expect_same_bits(train_on_mesh<f32_target>(gpt, {mesh_of(2, 2, 1), 5}), train_on_mesh<f32_target>(gpt, {mesh_of(2, 2, 1), 5}));
}

// What a step exchanges does not grow with micro-batches; beside the buckets there are the loss and the norm.
TEST(data_parallel, exchanges_gradients_once_a_step) {
  for (const int micro : {1, 3}) {
    auto o = mesh_of(2, 1);
    o.accumulate = true;
    const auto plan = planned<f32_target>(gpt, o);
    int buckets = 0;
    for (const step& s : plan.steps)
      buckets += s.op == &info<op::all_reduce> && plan.operands[std::size_t(s.operands)].region == value_kind::grad;
    EXPECT_GT(buckets, 3);
    EXPECT_EQ(train_on_mesh<f32_target>(gpt, {o, 1, micro}).data_calls, (std::vector<int>{buckets + 2, 0, 0}));
    o.zero = 1;
    EXPECT_EQ(train_on_mesh<f32_target>(gpt, {o, 1, micro}).data_calls, (std::vector<int>{2, buckets, buckets}));
  }
}

// So that a device which runs collectives beside other work sends the last layer's gradients while it computes the first's.
TEST(data_parallel, sends_a_bucket_right_after_the_last_of_its_gradients) {
  const auto p = planned<f32_target>(gpt, mesh_of(2, 1));
  std::size_t early = 0;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const operand& bucket = p.operands[std::size_t(p.steps[i].operands)];
    if (p.steps[i].op != &info<op::all_reduce> || bucket.region != value_kind::grad) continue;
    const auto writes = [&](const step& s) {
      bool found = false;
      for (int k = 0; k < s.outputs; ++k) {
        const operand& o = p.operands[std::size_t(s.operands + s.inputs + k)];
        found =
            found || (!s.op->collective && o.region == value_kind::grad && o.at < bucket.at + bucket.bytes && bucket.at < o.at + o.bytes);
      }
      return found;
    };
    std::size_t last = 0;
    for (std::size_t j = 0; j < p.steps.size(); ++j)
      if (writes(p.steps[j])) last = j;
    ASSERT_LT(last, i);
    for (std::size_t j = last + 1; j < i; ++j) EXPECT_TRUE(p.steps[j].op->collective) << "step " << j << " is before " << i;
    early += i + 30 < p.steps.size() ? 1 : 0;
  }
  EXPECT_GE(early, 2u);
}

// An update runs beside the exchange of the bucket before; the last exchange has nothing beside it, so it is the smallest.
TEST(data_parallel, updates_the_largest_bucket_first_with_zero_1) {
  const auto p = planned<bf16_target>(gpt, mesh_of(2, 1, 1));
  std::vector<std::int64_t> bytes;
  for (const step& s : p.steps)
    if (s.op == &info<op::all_gather_pieces>) bytes.push_back(p.operands[std::size_t(s.operands)].bytes);
  EXPECT_GT(bytes.size(), 2u);
  EXPECT_TRUE(std::is_sorted(bytes.rbegin(), bytes.rend()));
}

TEST(data_parallel, takes_with_zero_1_the_memory_of_a_part_of_masters_and_moments) {
  for (const int data : {2, 4}) {
    const auto plain = planned<bf16_target>(gpt, mesh_of(data, 1)), zero = planned<bf16_target>(gpt, mesh_of(data, 1, 1));
    for (const auto k : {value_kind::moment, value_kind::master}) {
      const auto all = plain.totals.region[std::size_t(k)], part = zero.totals.region[std::size_t(k)];
      EXPECT_LE(std::abs(part * data - all), all / 20) << data;
    }
    EXPECT_EQ(plain.totals.region[std::size_t(value_kind::param)], zero.totals.region[std::size_t(value_kind::param)]);
  }
}

std::string error_of(const training_options& o) {
  const auto p = plan_training<f32_target>(gpt, o);
  return p.ok() ? "" : p.error().line();
}
TEST(data_parallel, refuses_what_does_not_join_by_name) {
  auto o = mesh_of(2, 1);
  o.update = update_policy::within_backward;
  o.clip = clipping::none;
  EXPECT_EQ(error_of(o), "update_policy::within_backward keeps no gradients for other devices: use after_backward with a mesh");
  o = mesh_of(2, 1, 1);
  o.optimizer = optimizer_kind::muon;
  EXPECT_EQ(error_of(o), "optimizer_kind::muon with tensor parallelism or ZeRO: no device has whole matrices and tensors: use adamw");
  o.zero = 0;
  EXPECT_EQ(error_of(o), "");
  o = mesh_of(1, 2);
  o.clip = clipping::tensor_norm;
  EXPECT_EQ(error_of(o),
            "clipping::tensor_norm with tensor parallelism or ZeRO: no device has whole matrices and tensors: use global_norm");
  EXPECT_EQ(error_of(mesh_of(0, 1)), "a mesh of data 0, tensor 1: give at least 1 of each");
  EXPECT_EQ(error_of(mesh_of(1, 1, 2)), "zero 2: there is 0, none, and 1, which divides the optimiser's work and memory");
}

// A communicator that fails at one call.
class failing final : public communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 2; }
  result<void> all_reduce(std::span<std::byte>, dtype, reduction) override {
    return fail(errc::peer_lost, "rank 1 was lost", "test", "restart");
  }
  result<void> all_gather(std::span<const std::byte>, std::span<std::byte>) override { return {}; }
  result<void> reduce_scatter(std::span<std::byte>, std::span<std::byte>, dtype, reduction) override { return {}; }
  result<void> broadcast(std::span<std::byte>, int) override { return {}; }
  result<void> barrier() override { return {}; }
  void abort(failure) noexcept override {}
};
TEST(data_parallel, ends_a_run_with_the_cause_where_a_collective_fails) {
  failing group;
  auto d = device<f32_target>::open({.threads = 1});
  ASSERT_TRUE(d.ok());
  d->join({nullptr, &group});
  auto s = d->load(planned<f32_target>(gpt, mesh_of(2, 1)));
  ASSERT_TRUE(s.ok()) << s.error().line();
  s->initialize(1);
  EXPECT_TRUE(s->run(scalars(1)).skipped);
  ASSERT_FALSE(s->status().ok());
  EXPECT_EQ(s->status().error().line(), "test: rank 1 was lost (fix: restart)");
}

}  // namespace data_parallel_test
