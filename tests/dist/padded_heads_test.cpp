// Heads that do not divide: the last device of a tensor group has fewer, and heads of zeros in place of the others, which stay zeros.
#include <io/scratch_folder.hpp>
#include <isotope/interop/gpt2_folder.hpp>

#include "training_run.hpp"

using namespace dist_test;

namespace padded_heads_test {

constexpr model::gpt three{2, 3, 24, 65, 16, 0.1}, five{1, 5, 20, 65, 16, 0.1};
constexpr model::llama grouped{2, 6, 3, 32, 8, 48, 65, 32, 1e-5, 10000};

TEST(padded_heads, give_a_gpt_with_dropout_the_gradients_and_losses_of_one_device) {
  for (const auto& size : {three, five}) {
    const model::gpt_loss_of gpt{size, 3, 16};
    const auto one = train_on_mesh<f32_target>(gpt, {mesh_of(1, 1), 20, 1, false});
    expect_same_training(train_on_mesh<f32_target>(gpt, {mesh_of(1, 2), 20, 1, false}), one);
    training_options recomputed = mesh_of(1, 2);
    recomputed.recompute = recompute::all;
    expect_same_training(train_on_mesh<f32_target>(gpt, {recomputed, 3}), train_on_mesh<f32_target>(gpt, {mesh_of(1, 1), 3}));
  }
  model::gpt_loss_of many{{1, 7, 28, 65, 16}, 2, 16};  // 2, 2, 2 and 1
  expect_same_training(train_on_mesh<f32_target>(many, {mesh_of(1, 4), 5}), train_on_mesh<f32_target>(many, {mesh_of(1, 1), 5}));
}

// 3 key-value heads with two heads of queries each, which a device has together.
TEST(padded_heads, give_llamas_the_gradients_and_losses_of_one_device) {
  model::llama norms = grouped, plain = grouped;
  norms.qk_norm = true;
  plain.kv_heads = 7, plain.heads = 7, plain.hidden = 44, plain.qkv_bias = true;
  for (const auto& [size, n] : {std::pair(grouped, 2), std::pair(norms, 2), std::pair(plain, 4)}) {
    const model::llama_loss_of llama{size, 3, 16};
    expect_same_training(train_on_mesh<f32_target>(llama, {mesh_of(1, n), 5}), train_on_mesh<f32_target>(llama, {mesh_of(1, 1), 5}));
  }
}

TEST(padded_heads, give_the_logits_of_one_device) {
  std::vector<float> logits[2];
  for (const int n : {1, 2}) {
    const auto o = mesh_of(1, n);
    auto p = plan_inference<f32_target>(model::gpt_logits_of{three, 3, 16}, 0, true, false, nullptr, nullptr, false, false, o);
    ASSERT_TRUE(p.ok()) << p.error().line();
    on_mesh<f32_target>(o.mesh, *p, [&](rank<f32_target> k) {
      const auto tokens = *k.session.input<std::int32_t>("tokens");
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * 7 % 65);
      ASSERT_TRUE(k.session.run_plan(0).ok());
      const auto y = *k.session.output<float>("output");
      if (k.at.tensor == n - 1) logits[n - 1].assign(y.begin(), y.end());
    });
  }
  EXPECT_TRUE(distance(logits[1], logits[0]) <= 1e-5) << distance(logits[1], logits[0]);
}

/// Calls see(path, values of this rank, which of them pad).
template <class T, class See> void for_each_tensor(session_of<T>& s, tensor_kind what, int tensor, const See& see) {
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    const slot& p = s.parameters()[k];
    if (!s.keeps(what, k)) continue;
    std::vector<float> here(std::size_t(p.dims.count()));
    ASSERT_TRUE(s.read(what, k, here).ok());
    std::vector<bool> pads(here.size(), true);
    for_piece_runs(p, tensor, [&](const piece_run& r) { std::fill_n(pads.begin() + r.here, r.count, false); });
    see(p.path.view(), here, pads);
  }
}
template <class T> void expect_zeros(const model::gpt& size) {
  const auto o = mesh_of(1, 2);
  on_mesh<T>(o.mesh, planned<T>(model::gpt_loss_of{size, 3, 16}, o), [&](rank<T> k) {
    std::size_t padding = 0;
    for (int i = 1; i <= 4; ++i) {
      for (const auto what : {tensor_kind::parameter, tensor_kind::gradient, tensor_kind::moment1, tensor_kind::moment2})
        for_each_tensor<T>(k.session, what, k.at.tensor, [&](std::string_view path, const auto& x, const auto& pads) {
          for (std::size_t j = 0; j < x.size(); ++j)
            if (pads[j] && path.find("attn") != path.npos) {
              ++padding;
              EXPECT_EQ(x[j], 0) << path << ' ' << j << ", step " << i;
            }
        });
      fill_rows(k.session, 0, 3, size.vocab, i);
      k.session.run(scalars(i));
    }
    // Of each kind: 3 rows of weights and biases for each element of a head, and a column of the layer behind them.
    const std::size_t head = std::size_t(size.width / size.heads);
    if (k.at.tensor == 0) EXPECT_EQ(padding, 0u);
    else EXPECT_EQ(padding, std::size_t(size.layers) * 4 * 4 * head * std::size_t(4 * size.width + 3));
  });
}
TEST(padded_heads, stay_zeros_in_weights_gradients_and_moments) {
  expect_zeros<f32_target>(three);
  expect_zeros<bf16_target>(five);
}

TEST(padded_heads, begin_with_the_weights_of_a_folder) {
  const scratch_folder f;
  tensors whole;
  const model::gpt_loss_of gpt{three, 3, 16};
  for (const int n : {1, 2}) {
    std::mutex one_at_a_time;
    tensors pieces;
    const auto o = mesh_of(1, n);
    on_mesh<f32_target>(o.mesh, planned<f32_target>(gpt, o), [&](rank<f32_target> k) {
      const std::lock_guard lock(one_at_a_time);
      if (n == 1) {
        ASSERT_TRUE(interop::save_gpt2(f.at("gpt"), k.session, three).ok());
        return collect<f32_target>(k.session, tensor_kind::parameter, 0, whole);
      }
      k.session.initialize(100);
      const auto folder = io::open_model(f.at("gpt"));
      ASSERT_TRUE(folder.ok()) << folder.error().line();
      const auto match = interop::match_gpt2(*folder, {three}, k.session.parameters());
      ASSERT_TRUE(match.ok()) << match.error().line();
      const auto loaded = interop::load_weights(k.session, *folder, *match);
      ASSERT_TRUE(loaded.ok()) << loaded.error().line();
      collect<f32_target>(k.session, tensor_kind::parameter, k.at.tensor, pieces);
      for_each_tensor<f32_target>(k.session, tensor_kind::parameter, k.at.tensor,
                                  [](std::string_view path, const auto& x, const auto& pads) {
                                    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_TRUE(!pads[j] || x[j] == 0) << path << ' ' << j;
                                  });
    });
    if (n == 2) { EXPECT_EQ(pieces, whole); }
  }
}

// A bias that all heads share, and an exponential, would make of zeros what they are not.
struct shifted_heads {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto x = nn::linear(s / "first", s.input("x", {2, 4, 12}), 12, 0.1, true, nn::parallel::columns({12}, 3));
    return mean(square(nn::linear(s / "second", exp(x), 8, 0.1, true, nn::parallel::rows(3))));
  }
};
TEST(padded_heads, are_refused_where_they_would_not_stay_zeros) {
  const auto p = plan_training<f32_target>(shifted_heads{}, mesh_of(1, 2));
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(
      p.error().line(),
      "exp: what it gives for heads of zeros, which fill up those of the last device, might not be zero: [2,4,12] divided along axis 2, "
      "tensor 2, in first.bias");
}

}  // namespace padded_heads_test
