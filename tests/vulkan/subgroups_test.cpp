/// Which devices are taken by what they say of their subgroups, on made-up devices, and what the kernels make of the sizes.
#include <isotope/backend/vulkan/subgroups.hpp>
#include <isotope/kernels/vulkan/rows/rows.hpp>

#include <gtest/gtest.h>

namespace isotope::vulkan {
namespace subgroups_test {

constexpr VkSubgroupFeatureFlags all =
    VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT;
constexpr VkShaderStageFlags compute = VK_SHADER_STAGE_COMPUTE_BIT;

subgroup_properties sized(std::uint32_t usual, std::uint32_t least, std::uint32_t most, std::uint32_t in_workgroup = 32) {
  return {usual, least, most, in_workgroup, compute, compute, all};
}
std::string missing(const subgroup_properties& p, std::uint32_t invocations = 1024) {
  device_limits f;
  f.invocations = invocations;
  return take_subgroups(p, f);
}
device_limits taken(const subgroup_properties& p, std::uint32_t invocations = 1024) {
  device_limits f;
  f.invocations = invocations;
  EXPECT_EQ(take_subgroups(p, f), "");
  return f;
}

TEST(vulkan_subgroups, every_operation_that_kernels_use_is_asked_for_by_name) {
  const struct {
    VkSubgroupFeatureFlags bit;
    const char* text;
  } each[] = {{VK_SUBGROUP_FEATURE_BASIC_BIT, "subgroup basic operations"},
              {VK_SUBGROUP_FEATURE_VOTE_BIT, "subgroup vote operations"},
              {VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, "subgroup arithmetic operations"},
              {VK_SUBGROUP_FEATURE_BALLOT_BIT, "subgroup ballot operations"}};
  for (const auto& e : each) {
    auto p = sized(32, 32, 32);
    p.operations &= ~e.bit;
    EXPECT_EQ(missing(p), e.text);
  }
  auto p = sized(32, 32, 32);
  p.operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT;
  EXPECT_EQ(missing(p), "subgroup arithmetic operations, subgroup ballot operations");
}
TEST(vulkan_subgroups, operations_and_required_sizes_must_be_there_in_compute_shaders) {
  auto p = sized(32, 32, 64);
  p.stages = VK_SHADER_STAGE_FRAGMENT_BIT;
  EXPECT_EQ(missing(p), "subgroup operations in compute shaders");
  p = sized(32, 32, 64);
  p.require_stages = VK_SHADER_STAGE_FRAGMENT_BIT;
  EXPECT_EQ(missing(p), "required subgroup sizes in compute shaders");
  p = sized(32, 32, 32);  // nothing to choose: no pipeline requires a size
  p.require_stages = 0;
  EXPECT_EQ(missing(p), "");
}
TEST(vulkan_subgroups, sizes_are_those_that_kernels_take) {
  EXPECT_EQ(taken(sized(32, 32, 32)).subgroup, 32u);
  EXPECT_EQ(taken(sized(64, 32, 64)).subgroup, 64u);
  EXPECT_EQ(taken(sized(32, 8, 32, 128)).subgroup, 32u);
  EXPECT_EQ(taken(sized(4, 4, 4)).subgroup, 4u);
  EXPECT_EQ(taken(sized(128, 64, 128, 16)).subgroup, 64u) << "pipelines require the smaller size";
  EXPECT_EQ(taken(sized(1, 1, 16, 256)).subgroup, 4u);
  EXPECT_EQ(missing(sized(128, 128, 128)), "subgroups of 4 to 64 invocations (it has 128)");
  EXPECT_EQ(missing(sized(1, 1, 2)), "subgroups of 4 to 64 invocations (it has 1 to 2)");
  EXPECT_EQ(missing(sized(0, 0, 0)), "subgroups of 4 to 64 invocations (it has 0)");
}
TEST(vulkan_subgroups, workgroups_must_hold_what_kernels_of_fixed_size_have) {
  EXPECT_EQ(missing(sized(16, 16, 16), 256), "");
  EXPECT_EQ(missing(sized(16, 16, 16), 128), "workgroups of 256 invocations in subgroups of 16 (it has 128)");
  EXPECT_EQ(missing(sized(64, 64, 64), 256), "workgroups of 512 invocations in subgroups of 64 (it has 256)");
  EXPECT_EQ(missing(sized(32, 8, 32, 4)), "workgroups of 256 invocations in subgroups of 32 (it has 128)");
  EXPECT_EQ(missing(sized(8, 8, 8, 4)), "") << "where no size is required the limit does not apply";
}
TEST(vulkan_subgroups, row_kernels_stay_within_the_subgroups_of_a_workgroup) {
  for (const std::uint32_t size : {4u, 8u, 16u, 32u, 64u})
    for (const std::uint32_t subgroups : {8u, 12u, 16u, 32u, 64u})
      for (const std::uint32_t invocations : {512u, 768u, 1000u, 1024u}) {
        const auto p = sized(size, 2, 128, subgroups);
        if (!missing(p, invocations).empty()) continue;
        const device_limits f = taken(p, invocations);
        const auto most = std::int64_t(size) * subgroups;
        const auto fits = [&](std::int64_t n) { return n > 0 && n % size == 0 && n <= most && n <= std::int64_t(invocations); };
        EXPECT_TRUE(fits(portable::largest_workgroup(f)));
        EXPECT_TRUE(fits(portable::team::alone(f).workgroup));
        for (const std::int64_t blocks : {0, 1, 63, 64, 65, 255, 256, 1000, 4096, 8192, 100000}) {
          const auto held = portable::team::holding(f, blocks, 8, 8);
          EXPECT_TRUE(held.hold == 0 || fits(held.workgroup)) << blocks << " blocks, " << size << ' ' << subgroups << ' ' << invocations;
          EXPECT_TRUE(fits(portable::team::streaming(f, blocks, 8).workgroup)) << blocks;
          EXPECT_TRUE(fits(portable::workgroup(f, blocks))) << blocks;
        }
      }
}

}  // namespace subgroups_test
}  // namespace isotope::vulkan
