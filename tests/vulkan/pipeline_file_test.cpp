#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <isotope/backend/vulkan/pipeline_file.hpp>

#include "../io/scratch_folder.hpp"

namespace isotope::vulkan {
namespace pipeline_file_test {

physical_device some_device() {
  physical_device p;
  p.properties.vendorID = 0x10de;
  p.properties.deviceID = 7;
  p.properties.driverVersion = 580;
  p.properties.apiVersion = VK_API_VERSION_1_3;
  p.cache_uuid[3] = 9;
  return p;
}
std::vector<char> some_blob(std::size_t n) {
  std::vector<char> b(n);
  for (std::size_t i = 0; i < n; ++i) b[i] = char(i * 7);
  return b;
}

TEST(pipeline_file, comes_back_as_it_was_written) {
  const scratch_folder folder;
  const std::string path = folder.at("sub/pipelines");
  ASSERT_TRUE(pipeline_file::write(path, some_device(), some_blob(1000)));
  EXPECT_EQ(pipeline_file::read(path, some_device()), some_blob(1000));
}
TEST(pipeline_file, of_another_device_driver_or_uuid_is_ignored) {
  const scratch_folder folder;
  const std::string path = folder.at("pipelines");
  ASSERT_TRUE(pipeline_file::write(path, some_device(), some_blob(100)));
  auto other = some_device();
  other.properties.driverVersion += 1;
  EXPECT_TRUE(pipeline_file::read(path, other).empty());
  other = some_device();
  other.properties.deviceID += 1;
  EXPECT_TRUE(pipeline_file::read(path, other).empty());
  other = some_device();
  other.properties.vendorID += 1;
  EXPECT_TRUE(pipeline_file::read(path, other).empty());
  other = some_device();
  other.properties.apiVersion = VK_MAKE_API_VERSION(0, 1, 4, 0);
  EXPECT_TRUE(pipeline_file::read(path, other).empty());
  other = some_device();
  other.cache_uuid[0] ^= 1;
  EXPECT_TRUE(pipeline_file::read(path, other).empty());
  EXPECT_EQ(pipeline_file::read(path, some_device()), some_blob(100)) << "and stays for its own";
}
TEST(pipeline_file, cut_or_changed_anywhere_or_missing_is_ignored) {
  const scratch_folder folder;
  const std::string path = folder.at("pipelines");
  EXPECT_TRUE(pipeline_file::read(path, some_device()).empty());
  ASSERT_TRUE(pipeline_file::write(path, some_device(), some_blob(200)));
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = char(bad[i] ^ 0x10);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_TRUE(pipeline_file::read(path, some_device()).empty()) << "byte " << i;
    std::ofstream(path, std::ios::binary) << whole.substr(0, i);
    EXPECT_TRUE(pipeline_file::read(path, some_device()).empty()) << "cut at " << i;
  }
  std::ofstream(path, std::ios::binary) << whole + "x";
  EXPECT_TRUE(pipeline_file::read(path, some_device()).empty());
}
TEST(pipeline_file, an_unwritable_folder_is_no_error_but_false) {
  EXPECT_FALSE(pipeline_file::write("/proc/no/such/folder/pipelines", some_device(), some_blob(10)));
}
TEST(pipeline_file, a_writer_that_is_killed_leaves_an_old_file_a_new_one_or_none) {
  const scratch_folder folder;
  const std::string path = folder.at("pipelines");
  for (int round = 0; round < 25; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (std::size_t n = 1;; ++n) pipeline_file::write(path, some_device(), some_blob(50'000 + n % 7));
    }
    // Killed at another point of its work each time: after it has been scheduled `round` times more.
    for (volatile int spin = 0; spin < 20'000 * (round + 1);) spin = spin + 1;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    if (!std::filesystem::exists(path)) continue;
    const auto blob = pipeline_file::read(path, some_device());
    ASSERT_GE(blob.size(), 50'000u) << "round " << round;
    EXPECT_EQ(blob, some_blob(blob.size()));
  }
}

}  // namespace pipeline_file_test
}  // namespace isotope::vulkan
