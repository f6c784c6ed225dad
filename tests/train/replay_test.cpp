// A program writes a recorded run as safetensors, reads and replays it, and gets the same bits as with direct steps.
#include "../io/scratch_folder.hpp"

#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <isotope/train/replay.hpp>
#include "../device_there.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace iso = isotope;
namespace train = isotope::train;
using target = iso::selected;
using session = iso::device<target>::session;

namespace replay_test {

constexpr iso::model::gpt size{1, 2, 8, 7, 4};
constexpr std::int64_t steps = 2, rows = 2, length = 3;
const iso::io::text_pairs metadata = {{"layers", "1"}, {"heads", "2"},         {"width", "8"},  {"vocab", "7"},   {"context", "4"},
                                      {"lr", "0.01"},  {"betas", "0.9, 0.95"}, {"eps", "1e-8"}, {"decay", "0.1"}, {"clip", "1"}};

session loaded() {
  auto device = isotope_test::there(iso::device<target>::open());
  auto s = device->load(*iso::plan_training<target>(iso::model::gpt_loss_of{size, int(rows), int(length)}));
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().line());
  s->initialize(7);
  return *std::move(s);
}
std::vector<std::vector<float>> all_of(const session& s, iso::tensor_kind kind) {
  std::vector<std::vector<float>> r;
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    r.emplace_back(std::size_t(s.parameters()[k].dims.count()));
    EXPECT_TRUE(s.read(kind, k, r.back()).ok());
  }
  return r;
}

TEST(replay, has_the_bits_of_the_same_steps_made_by_hand) {
  iso::scratch_folder folder;
  session by_hand = loaded();
  const auto weights = all_of(by_hand, iso::tensor_kind::parameter);
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < steps * rows * (length + 1); ++i) tokens.push_back(i * i % 7);
  std::vector<iso::io::stored_tensor> tensors = {
      {"tokens", {"I64", 8}, {steps, rows, length + 1}, std::as_bytes(std::span<const std::int64_t>(tokens))}};
  const auto model = train::parameters_of<target>(iso::model::gpt_loss_of{size, int(rows), int(length)});
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->size(), weights.size());
  for (std::size_t k = 0; k < weights.size(); ++k)
    tensors.push_back({(*model)[k].name, iso::io::f32_elements, (*model)[k].dims, std::as_bytes(std::span(weights[k]))});
  ASSERT_TRUE(iso::io::write_safetensors(folder.at("T"), tensors, metadata).ok());

  const auto recorded = train::read_recorded_run(folder.at("T"));
  ASSERT_TRUE(recorded.ok()) << recorded.error().line();
  EXPECT_EQ(recorded->size, size);
  session other = loaded();
  other.initialize(99);
  const auto replayed = train::replay(other, *recorded);
  ASSERT_TRUE(replayed.ok()) << replayed.error().line();

  iso::step_scalars x{.learning_rate = 0.01f, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8f, .weight_decay = 0.1f, .clip_norm = 1};
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<std::int32_t> in, wanted;
    for (std::int64_t b = 0; b < rows; ++b)
      for (std::int64_t i = 0; i < length; ++i) {
        const auto at = std::size_t((step * rows + b) * (length + 1) + i);
        in.push_back(std::int32_t(tokens[at])), wanted.push_back(std::int32_t(tokens[at + 1]));
      }
    x.optimizer_step = step + 1;
    const iso::batch one{in, wanted};
    const auto report = by_hand.step(one, x);
    EXPECT_EQ(float(report.loss), replayed->loss[std::size_t(step)]);
    EXPECT_EQ(float(report.grad_norm), replayed->grad_norm[std::size_t(step)]);
    if (step > 0) continue;
    const auto grads = all_of(by_hand, iso::tensor_kind::gradient);
    for (std::size_t k = 0; k < grads.size(); ++k) EXPECT_EQ(replayed->parameters[k].first_gradient, grads[k]) << (*model)[k].name;
  }
  const auto last = all_of(by_hand, iso::tensor_kind::parameter);
  for (std::size_t k = 0; k < last.size(); ++k) EXPECT_EQ(replayed->parameters[k].weight, last[k]) << (*model)[k].name;

  ASSERT_TRUE(train::write_replayed_run(folder.at("R"), *replayed, {{"by", "a test"}}).ok());
  const auto back = iso::io::read_safetensors(folder.at("R"));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->tensors.size(), 2 + 2 * last.size());
  const auto* w = back->find("final.h.0.mlp.c_fc.weight");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->dims, (std::vector<std::int64_t>{32, 8}));
}
TEST(replay, a_session_of_another_model_is_refused) {
  iso::scratch_folder folder;
  const std::vector<std::int64_t> tokens(8, 1);
  const std::vector<iso::io::stored_tensor> tensors = {{"tokens", {"I64", 8}, {2, 1, 4}, std::as_bytes(std::span(tokens))}};
  ASSERT_TRUE(iso::io::write_safetensors(folder.at("T"), tensors, metadata).ok());
  const auto recorded = train::read_recorded_run(folder.at("T"));
  ASSERT_TRUE(recorded.ok()) << recorded.error().line();
  session s = loaded();
  const auto r = train::replay(s, *recorded);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().line().find("is missing"), std::string::npos) << r.error().line();
}

}  // namespace replay_test
