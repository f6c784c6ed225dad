// Plans for a mesh that the compiler makes.
#include "training_run.hpp"

#include <isotope/plan/report/mesh.hpp>

using namespace dist_test;

namespace static_mesh_test {

constexpr model::gpt size{1, 2, 16, 33, 8, 0.1};
constexpr training_options options{.accumulate = true, .mesh = {.data = 2, .tensor = 2}, .zero = 1, .bucket_bytes = 4096};
using program = training<model::gpt_loss<size, 2, 8>, f32_target, options>;

TEST(static_mesh, has_the_steps_of_the_plan_made_at_run_time) {
  const auto made = planned<f32_target>(model::gpt_loss_of{size, 2, 8}, options);
  const plan_view a = program::view(), b = made;
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].op, b.steps[i].op);
    EXPECT_EQ(a.steps[i].attr, b.steps[i].attr);
  }
  ASSERT_EQ(a.operands.size(), b.operands.size());
  for (std::size_t i = 0; i < a.operands.size(); ++i) {
    EXPECT_EQ(a.operands[i].at, b.operands[i].at);
    EXPECT_EQ(a.operands[i].rank_stride, b.operands[i].rank_stride);
    EXPECT_TRUE(a.operands[i].dims == b.operands[i].dims);
  }
  EXPECT_EQ(a.totals.mesh, (device_mesh{2, 2}));
  EXPECT_TRUE(a.totals.shards_updates);
  EXPECT_EQ(a.totals.bytes, b.totals.bytes);
}

// An option that is not used leaves no trace in the plan of one device.
TEST(static_mesh, is_no_part_of_a_plan_for_one_device) {
  training_options o, p;
  p.zero = 1;
  p.bucket_bytes = 1;
  const auto a = planned<f32_target>(model::gpt_loss_of{size, 2, 8}, o), b = planned<f32_target>(model::gpt_loss_of{size, 2, 8}, p);
  EXPECT_EQ(a.totals.bytes, b.totals.bytes);
  EXPECT_EQ(a.steps.size(), b.steps.size());
  for (const step& s : a.steps) EXPECT_FALSE(s.op->collective);
  for (const slot& s : a.slots) EXPECT_FALSE(s.pieces.divides());
  for (const operand& x : b.operands) EXPECT_EQ(x.rank_stride, 0);
  EXPECT_EQ(mesh_line(a), "");
}

// (2,8,16) f32 = 1024 bytes. Tensor group: embedding, 2 forward, 2 backward and the head's gradient of 1024 bytes, (3,16) of the classes, the norm.
TEST(static_mesh, is_described_by_what_it_exchanges) {
  const auto p = planned<f32_target>(model::gpt_loss_of{size, 2, 8}, mesh_of(1, 2));
  EXPECT_EQ(mesh_line(p),
            "mesh of data 1, tensor 2; of the tensor group 8 collectives of " + std::to_string(6 * 1024 + 3 * 16 * 4 + 4) + " bytes (f32)");
}

}  // namespace static_mesh_test
