/// The device fills parameters that start as zeros, so nothing is copied for them.
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>

#include <algorithm>
#include <vector>

namespace isotope::vulkan {
namespace initialize_test {

template <class P> struct vulkan_initialize : testing::Test {};
using precisions = ::testing::Types<precision::f32, precision::bf16>;
TYPED_TEST_SUITE(vulkan_initialize, precisions);

/// Parameters of odd sizes, in f32, and in bf16 with master copies; those that start as zeros are between others.
struct zeros_between {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    const auto a = s.param("a", {3, 5}, init::normal(1)), b = s.param("b", {5}), c = s.param("c", {3, 5}, init::ones);
    return cast(mean(square(a + b) * (c + s.param("d", {3, 1}))), accum_of(s.machine->program()));
  }
};

TYPED_TEST(vulkan_initialize, copies_what_is_not_zero_alone) {
  using T = target<backend::vulkan, TypeParam>;
  auto& d = vulkan_test::test_device();
  auto plan = plan_training<T>(zeros_between{});
  ASSERT_TRUE(plan.ok());
  auto s = device<T>::over(d.context, d.pipelines).load(*std::move(plan));
  ASSERT_TRUE(s.ok());
  s->initialize(3);
  const auto slots = s->parameters();
  const auto read = [&] {
    std::vector<std::vector<float>> all;
    for (std::size_t k = 0; k < slots.size(); ++k) {
      all.emplace_back(std::size_t(slots[k].dims.count()));
      EXPECT_TRUE(s->read(tensor_kind::parameter, k, all.back()).ok());
    }
    return all;
  };
  const auto first = read();
  std::int64_t copied = 0;
  for (std::size_t k = 0; k < slots.size(); ++k) {
    const bool zeros = slots[k].init.how == initializer::kind::zeros;
    const bool wide = slots[k].type != dtype::f32;  // has a master copy
    if (!zeros) copied += slots[k].dims.count() * (size_of(slots[k].type) + (wide ? 4 : 0));
    EXPECT_EQ(std::count(first[k].begin(), first[k].end(), 0.0f), zeros ? slots[k].dims.count() : 0) << slots[k].path.view();
    EXPECT_TRUE(s->write(tensor_kind::parameter, k, std::vector<float>(first[k].size(), 7.0f)).ok());
  }
  ASSERT_GT(copied, 0);
  const auto before = s->queue().staging().uploaded();
  s->initialize(3);
  EXPECT_EQ(s->queue().staging().uploaded() - before, copied);
  EXPECT_EQ(read(), first);
}

}  // namespace initialize_test
}  // namespace isotope::vulkan
