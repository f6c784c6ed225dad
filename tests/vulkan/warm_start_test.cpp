/// A second start of a program compiles no pipeline: all are in the file of the first run, and the file is not written again.
#include "../io/scratch_folder.hpp"
#include "device.hpp"
#include "remembering_driver.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace isotope::vulkan {
namespace warm_start_test {

using f32 = target<backend::vulkan, precision::f32, kernels::native>;
constexpr model::gpt tiny{2, 2, 16, 20, 8};

struct start {
  bool warm = false;
  pipeline_counts counts;
  int saved = 0;  // how often the blob was read to be saved
};
/// Opens a device like a new process, loads a program, and closes the device.
start started(const std::string& file, bool trains, bool remembers = true) {
  auto o = vulkan_test::test_options();
  o.cache = file;
  auto c = *isotope_test::there(context::open(o));
  std::optional<vulkan_test::remembering_driver> driver;
  if (remembers) driver.emplace(*c);
  const auto made = std::make_shared<pipelines>(c);
  const auto d = device<f32>::over(c, made);
  auto evaluation = *plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8});
  const auto s =
      trains ? d.load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}), std::move(evaluation)) : d.load(std::move(evaluation));
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  EXPECT_EQ(made->counts().made, made->count());
  for (const auto& text : c->messages().texts()) EXPECT_TRUE(vulkan_test::allowed(text)) << text;
  return {made->warm(), made->counts(), driver ? driver->reads() : 0};
}

TEST(vulkan_warm_start, compiles_nothing_and_leaves_the_file_alone) {
  const scratch_folder folder;
  const std::string file = folder.at("pipelines");
  const auto cold = started(file, true);
  EXPECT_FALSE(cold.warm);
  EXPECT_GT(cold.counts.made, 20u);
  EXPECT_EQ(cold.counts.from_cache, 0u);
  EXPECT_EQ(cold.saved, 1);
  const auto warm = started(file, true);
  EXPECT_TRUE(warm.warm);
  EXPECT_EQ(warm.counts.made, cold.counts.made);
  EXPECT_EQ(warm.counts.from_cache, warm.counts.made);
  EXPECT_EQ(warm.saved, 0);
}
TEST(vulkan_warm_start, of_another_program_compiles_what_is_new_and_adds_it_to_the_file) {
  const scratch_folder folder;
  const std::string file = folder.at("pipelines");
  const auto evaluates = started(file, false);
  const auto trains = started(file, true);
  EXPECT_TRUE(trains.warm);
  EXPECT_EQ(trains.counts.from_cache, evaluates.counts.made);
  EXPECT_GT(trains.counts.made, trains.counts.from_cache);
  EXPECT_EQ(trains.saved, 1);
  for (const bool both : {true, false}) {
    const auto again = started(file, both);
    EXPECT_EQ(again.counts.from_cache, again.counts.made);
    EXPECT_EQ(again.saved, 0);
  }
}
TEST(vulkan_warm_start, compiles_nothing_on_this_driver) {
  const scratch_folder folder;
  const std::string file = folder.at("pipelines");
  started(file, true, false);
  const auto blob = std::filesystem::file_size(file) - sizeof(pipeline_file_header);
  if (blob <= sizeof(VkPipelineCacheHeaderVersionOne)) GTEST_SKIP() << "this driver keeps no pipelines in its cache: " << blob << " bytes";
  const auto warm = started(file, true, false);
  EXPECT_GT(warm.counts.made, 20u);
  if (warm.counts.from_cache == 0) GTEST_SKIP() << "this driver does not report which pipelines came from its cache";
  EXPECT_EQ(warm.counts.from_cache, warm.counts.made);
}

}  // namespace warm_start_test
}  // namespace isotope::vulkan
