// While a tensor group adds up, products run that do not need the sum.
#include <vector>

#include "training_run.hpp"

using namespace dist_test;

namespace overlap_test {

constexpr model::gpt size{2, 4, 32, 65, 16, 0.1};

bool meets(const operand& a, const operand& b) { return a.region == b.region && a.at < b.at + b.bytes && b.at < a.at + a.bytes; }

/// For each sum of activations: how many products are between it and the first step that reads or overwrites it.
std::vector<int> products_beside_sums(const dynamic_plan& p, std::int64_t bytes) {
  std::vector<int> r;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const step& sum = p.steps[i];
    const operand& of = p.operands[std::size_t(sum.operands + sum.inputs)];
    if (sum.op->name != "all_reduce" || of.bytes != bytes) continue;
    int products = 0;
    bool waits = false;
    for (std::size_t k = i + 1; k < p.steps.size() && !waits; ++k) {
      const step& s = p.steps[k];
      for (int o = 0; o < s.inputs + s.outputs; ++o) waits = waits || meets(p.operands[std::size_t(s.operands + o)], of);
      products += !waits && s.op->name == "matmul";
    }
    r.push_back(products);
  }
  return r;
}

// The next step needs each of the five sums of the forward pass. In the backward pass the head's gradient of weights runs beside the first sum, and beside each of the
// other four the gradients of two weights: of the layer divided by columns whose input's gradient is added up, and of the one divided by rows behind it.
TEST(overlap, puts_products_of_weight_gradients_behind_the_begin_of_a_sum) {
  training_options o = mesh_of(1, 2);
  const std::int64_t activations = std::int64_t(3) * 16 * size.width * std::int64_t(sizeof(float));
  const auto planned_with = [&](bool overlap) {
    o.overlap = overlap;
    return planned<f32_target>(model::gpt_loss_of{size, 3, 16}, o);
  };
  const auto apart = planned_with(false), together = planned_with(true);
  EXPECT_EQ(products_beside_sums(apart, activations), (std::vector{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(products_beside_sums(together, activations), (std::vector{0, 0, 0, 0, 0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(together.steps.size(), apart.steps.size());
}

TEST(overlap, changes_no_bit) {
  training_options o = mesh_of(1, 2);
  const model::gpt_loss_of gpt{size, 3, 16};
  o.overlap = false;
  const auto apart = train_on_mesh<f32_target>(gpt, {o, 5});
  o.overlap = true;
  const auto together = train_on_mesh<f32_target>(gpt, {o, 5});
  expect_same_bits(together, apart);
}

}  // namespace overlap_test
