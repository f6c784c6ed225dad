// Tensor parallelism: a plan for several devices gives what the plan for one gives, up to the order of sums.
#include "training_run.hpp"

using namespace dist_test;

namespace tensor_parallel_test {

// 65 classes divide by neither 2 nor 4, so that tables are padded.
constexpr model::gpt size{2, 4, 32, 65, 16, 0.1};
constexpr model::gpt_loss_of gpt{size, 3, 16};
constexpr model::llama grouped{2, 8, 4, 32, 8, 48, 65, 32, 1e-5, 10000};

TEST(tensor_parallel, gives_a_gpt_with_dropout_the_gradients_and_50_losses_of_one_device) {
  const auto one = train_on_mesh<f32_target>(gpt, {mesh_of(1, 1), 50, 1, false});
  for (const int n : {2, 4}) expect_same_training(train_on_mesh<f32_target>(gpt, {mesh_of(1, n), 50, 1, false}), one);
}

TEST(tensor_parallel, gives_llamas_with_grouped_heads_biases_norms_and_heads_of_their_own_the_gradients_of_one_device) {
  model::llama other = grouped, norms = grouped;
  other.tied = false;
  other.qkv_bias = true;
  norms.qk_norm = true;
  for (const auto& s : {grouped, other, norms}) {
    const model::llama_loss_of llama{s, 3, 16};
    const auto one = train_on_mesh<f32_target>(llama, {mesh_of(1, 1), 5, 1, false});
    for (const int n : {2, 4}) expect_same_training(train_on_mesh<f32_target>(llama, {mesh_of(1, n), 5, 1, false}), one);
  }
}

// Adapters beside frozen weights: A is divided where the columns of x are, B where those of y are.
template <class Loss, class Size> struct tuned {
  Size size;
  int batch = 3;
  nn::lora how{};
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return nn::adapted{Loss{size, batch, 16}, how}(s); }
};
template <class Loss, class Size> void expect_same_tuning(const Size& of, std::span<const std::string_view> layers) {
  const nn::lora how{4, 8, layers};
  const auto one = train_on_mesh<f32_target>(tuned<Loss, Size>{of, 4, how}, {mesh_of(1, 1), 20});
  EXPECT_GT(one.losses.front(), one.losses.back());
  expect_same_training(train_on_mesh<f32_target>(tuned<Loss, Size>{of, 4, how}, {mesh_of(1, 2), 20}), one);
  expect_same_training(train_on_mesh<f32_target>(tuned<Loss, Size>{of, 2, how}, {mesh_of(2, 2, 1), 20}), one);
}
TEST(tensor_parallel, gives_adapters_the_gradients_and_20_losses_of_one_device) {
  constexpr std::string_view of_gpt[]{"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"},
      of_llama[]{"self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj"};
  expect_same_tuning<model::gpt_loss_of>(size, of_gpt);
  expect_same_tuning<model::llama_loss_of>(grouped, of_llama);
}

TEST(tensor_parallel, works_with_recomputed_blocks_and_a_head_in_chunks) {
  for (const auto& policy : {recompute::all, recompute::cheap, recompute::keep_matmuls})
    for (const int chunks : {1, 3}) {
      training_options plain = mesh_of(1, 1), split = mesh_of(1, 2);
      plain.recompute = split.recompute = policy;
      plain.head = split.head = head::in_chunks(chunks);
      expect_same_training(train_on_mesh<f32_target>(gpt, {split, 3, 1, false}), train_on_mesh<f32_target>(gpt, {plain, 3, 1, false}));
    }
}

TEST(tensor_parallel, gives_the_same_bits_again) {
  expect_same_bits(train_on_mesh<f32_target>(gpt, {mesh_of(1, 2), 5}), train_on_mesh<f32_target>(gpt, {mesh_of(1, 2), 5}));
}

// bf16 has 8 bits: a sum of two rounded products, rounded again, is within 3 x 2^-9 of the product's rounding; sums of the exact products are nearer.
TEST(tensor_parallel, reduces_activations_in_the_format_of_the_policy) {
  training_options narrow = mesh_of(1, 2), wide = narrow;
  wide.reduced = reduced_format::accumulation;
  const auto one = train_on_mesh<bf16_target>(gpt, {mesh_of(1, 1), 1});
  expect_same_training(train_on_mesh<bf16_target>(gpt, {narrow, 1}), one, 0.05, 0.01);
  expect_same_training(train_on_mesh<bf16_target>(gpt, {wide, 1}), one, 0.05, 0.01);
  const auto bytes = [](const dynamic_plan& p) {
    std::int64_t n = 0;
    for (const step& s : p.steps)
      if (s.op == &info<op::all_reduce>) n += p.operands[std::size_t(s.operands)].bytes;
    return n;
  };
  const std::int64_t few = bytes(planned<bf16_target>(gpt, narrow)), many = bytes(planned<bf16_target>(gpt, wide));
  EXPECT_GT(many, few * 3 / 2);  // the embedding, which is exact, and the norm stay as they are
  EXPECT_LT(many, few * 2);
}

// A block: attention's and the feed-forward layer's output forward, the inputs of both backward. Beside them the embedding, the head's input gradient and the norm
// are reduced, and the statistics of the classes gathered.
TEST(tensor_parallel, takes_two_all_reduces_a_block_forward_and_two_backward) {
  for (const int layers : {1, 2, 5}) {
    model::gpt_loss_of m = gpt;
    m.size.layers = layers;
    const auto calls = train_on_mesh<f32_target>(m, {mesh_of(1, 2)}).tensor_calls;
    EXPECT_EQ(calls, (std::vector<int>{4 * layers + 3, 1, 0})) << layers << " layers";
  }
}

TEST(tensor_parallel, gives_the_logits_of_one_device) {
  const model::gpt_logits_of model{size, 3, 16};
  std::vector<float> logits[3];
  for (const int n : {1, 2, 4}) {
    const auto o = mesh_of(1, n);
    auto p = plan_inference<f32_target>(model, 0, true, false, nullptr, nullptr, false, false, o);
    ASSERT_TRUE(p.ok()) << p.error().line();
    on_mesh<f32_target>(o.mesh, *p, [&](rank<f32_target> k) {
      const auto tokens = *k.session.input<std::int32_t>("tokens");
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * 7 % 65);
      ASSERT_TRUE(k.session.run_plan(0).ok());
      const auto y = *k.session.output<float>("output");
      if (k.at.tensor == n - 1) logits[n / 2].assign(y.begin(), y.end());
    });
  }
  EXPECT_TRUE(distance(logits[1], logits[0]) <= 1e-5) << distance(logits[1], logits[0]);
  EXPECT_TRUE(distance(logits[2], logits[0]) <= 1e-5) << distance(logits[2], logits[0]);
}

TEST(tensor_parallel, evaluates_beside_training_with_the_loss_of_one_device) {
  double losses[2]{};
  for (const int n : {1, 2}) {
    const auto o = mesh_of(1, n);
    auto p = plan_inference<f32_target>(gpt, 0, true, false, nullptr, nullptr, false, false, o);
    ASSERT_TRUE(p.ok()) << p.error().line();
    on_mesh<f32_target>(o.mesh, {{"training", planned<f32_target>(gpt, o)}, {"evaluation", *p}}, [&](rank<f32_target> k) {
      fill_rows(k.session, 0, 3, 65, 1);
      ASSERT_TRUE(k.session.run_plan(1).ok());
      if (k.at.tensor == 0) losses[n - 1] = double((*k.session.output<float>("output", 1))[0]);
    });
  }
  EXPECT_TRUE(std::fabs(losses[1] - losses[0]) <= 1e-6 * losses[0]) << losses[1] << " and " << losses[0];
}

TEST(tensor_parallel, trains_a_perceptron_whose_layers_divide_in_turn) {
  for (const int layers : {1, 2, 3}) {
    const model::mlp_loss_of m{{6, 24, layers, 5}, 7};
    tensors gradients[2];
    for (const int n : {1, 2}) {
      std::mutex one_at_a_time;
      const auto o = mesh_of(1, n);
      on_mesh<f32_target>(o.mesh, planned<f32_target>(m, o), [&](rank<f32_target> k) {
        const auto x = *k.session.input<float>("x");
        const auto targets = *k.session.input<std::int32_t>("targets");
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 11) / 4 - 1;
        for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = std::int32_t(i % 5);
        k.session.run(scalars(1));
        const std::lock_guard lock(one_at_a_time);
        collect<f32_target>(k.session, tensor_kind::gradient, k.at.tensor, gradients[n - 1]);
      });
    }
    expect_close(gradients[1], gradients[0], 1e-5);
  }
}

// The columns of a device are a part of each row, so that runs of elements have numbers with gaps between them; 6 columns are no multiple of the 4 of a call of Philox.
struct dropped_columns {
  int rows = 5;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto x = nn::linear(s / "first", s.input("x", {rows, 3, 8}), 12, 0.5, true, nn::parallel::columns());
    return mean(square(nn::linear(s / "second", dropout(x, 0.4), 8, 0.5, true, nn::parallel::rows())));
  }
};
TEST(tensor_parallel, drops_the_elements_of_one_device_where_columns_are_divided) {
  tensors gradients[3];
  for (const device_mesh m : {device_mesh{1, 1}, device_mesh{1, 2}, device_mesh{2, 2}}) {
    std::mutex one_at_a_time;
    const auto o = mesh_of(m.data, m.tensor);
    const int rows = 6 / m.data;
    on_mesh<f32_target>(m, planned<f32_target>(dropped_columns{rows}, o), [&](rank<f32_target> k) {
      const auto x = *k.session.input<float>("x");
      const std::size_t first = x.size() * std::size_t(k.at.data);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = float((first + i) * 37 % 101) / 50 - 1;
      k.session.run(scalars(3));
      const std::lock_guard lock(one_at_a_time);
      collect<f32_target>(k.session, tensor_kind::gradient, k.at.tensor, gradients[m.data + m.tensor - 2]);
    });
  }
  expect_close(gradients[1], gradients[0], 1e-5);
  expect_close(gradients[2], gradients[0], 1e-5);
}

// Ids of no row give NaN on one device; a mesh must not hide that.
TEST(tensor_parallel, gives_nan_for_tokens_that_are_not_in_the_table) {
  for (const int n : {1, 2}) {
    const auto o = mesh_of(1, n);
    on_mesh<f32_target>(o.mesh, planned<f32_target>(gpt, o), [&](rank<f32_target> k) {
      fill_rows(k.session, 0, 3, 65, 1);
      (*k.session.input<std::int32_t>("tokens"))[5] = 65;
      const auto r = k.session.run(scalars(1));
      EXPECT_TRUE(r.skipped && std::isnan(r.loss)) << n;
    });
  }
}

TEST(tensor_parallel, draws_the_initial_weights_of_one_device) {
  tensors weights[3];
  std::mutex one_at_a_time;
  for (const int n : {1, 2, 4}) {
    const auto o = mesh_of(1, n);
    on_mesh<f32_target>(o.mesh, planned<f32_target>(gpt, o), [&](rank<f32_target> k) {
      const std::lock_guard lock(one_at_a_time);
      collect<f32_target>(k.session, tensor_kind::parameter, k.at.tensor, weights[n / 2]);
    });
  }
  EXPECT_EQ(weights[1], weights[0]);
  EXPECT_EQ(weights[2], weights[0]);
}

std::string error_of(const model::gpt& s, const training_options& o) {
  const auto p = plan_training<f32_target>(model::gpt_loss_of{s, 2, 8}, o);
  return p.ok() ? "" : p.error().line();
}
TEST(tensor_parallel, refuses_what_does_not_divide_in_one_line_with_the_layer) {
  EXPECT_EQ(error_of(size, mesh_of(1, 3)),
            "parameter 'h.0.attn.c_attn.weight' [96,32]: 32 along axis 0 do not divide by tensor 3: choose a divisor");
  EXPECT_EQ(error_of({2, 2, 32, 65, 16}, mesh_of(1, 4)),
            "attention: 2 heads and 2 key-value heads do not divide by tensor 4: choose a divisor of both: [2,8,96] divided along axis 2, "
            "tensor 4, in "
            "h.0.attn.c_attn.bias");
  EXPECT_EQ(error_of({2, 4, 32, 5, 16}, mesh_of(1, 4)),
            "parameter 'wte.weight' [5,32]: 5 rows leave a device of tensor 4 without any: choose fewer");
}

struct softmax_of_columns {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto x = s.input("x", {4, 8});
    return mean(softmax(nn::linear(s / "first", x, 8, 0.1, true, nn::parallel::columns())));
  }
};
TEST(tensor_parallel, refuses_an_op_that_cannot_work_on_divided_operands) {
  const auto p = plan_training<f32_target>(softmax_of_columns{}, mesh_of(1, 2));
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error().line(), "softmax: it works on whole operands only: [4,8] divided along axis 1, tensor 2, in first.bias");
}

TEST(tensor_parallel, refuses_a_device_that_has_joined_other_groups) {
  auto d = device<f32_target>::open({.threads = 1});
  ASSERT_TRUE(d.ok());
  auto s = d->load(planned<f32_target>(gpt, mesh_of(1, 2)));
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().line(),
            "session: the plan 'training' is for a mesh of data 1, tensor 2, the device has joined groups of data 1, tensor 1 (fix: join "
            "groups of as many ranks as training_options::mesh says before loading)");
}

}  // namespace tensor_parallel_test
