// labels: matrices
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>

namespace isotope::vulkan {
namespace self_test_test {

using units = matrix_self_test<kernel<op::matmul, precision::bf16, kernels::native>>;

TEST(self_test, finds_nothing_wrong_with_a_working_device) {
  auto& d = vulkan_test::test_device();
  EXPECT_EQ(units(d.context, *d.pipelines).run(dtype::f16), "");
  EXPECT_EQ(units(d.context, *d.pipelines).run(dtype::bf16), "");
}
TEST(self_test, says_which_element_is_wrong_and_matrix_units_are_used_no_more) {
  auto o = vulkan_test::test_options();
  o.diagnose.distrust_matrix_units = true;
  auto c = isotope_test::there(context::open(o));
  pipelines made(*c);
  auto why = units(*c, made).run(dtype::f16);
  EXPECT_NE(why.find("self-test, NN: element ("), std::string::npos) << why;
  (*c)->distrust(why);
  for (const dtype t : {dtype::bf16, dtype::f16}) EXPECT_EQ((*c)->physical().limits.matrix(t), nullptr);
}

}  // namespace self_test_test
}  // namespace isotope::vulkan
