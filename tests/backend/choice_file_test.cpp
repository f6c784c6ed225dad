#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <isotope/backend/queue/choice_file.hpp>

namespace isotope {
namespace choice_file_test {

struct folder {
  std::filesystem::path at = std::filesystem::temp_directory_path() / ("isotope_choices_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(at); }
  ~folder() { std::filesystem::remove_all(at); }
  std::string file() const { return (at / "deeper" / "choices").string(); }
};
std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}

TEST(choice_file, what_was_chosen_is_found_again_in_another_process) {
  const folder f;
  choice_file first(f.file(), "device 1");
  EXPECT_EQ(first.find("m=1"), nullptr);
  first.choose("m=1", "tile 7");
  first.choose("m=2", "tile 8");
  ASSERT_TRUE(first.save());
  const choice_file again(f.file(), "device 1");
  ASSERT_NE(again.find("m=1"), nullptr);
  EXPECT_EQ(*again.find("m=1"), "tile 7");
  EXPECT_EQ(*again.find("m=2"), "tile 8");
  EXPECT_EQ(again.find("m=3"), nullptr);
  EXPECT_TRUE(again.ignored().empty());
}
TEST(choice_file, of_another_device_is_ignored_as_a_whole_and_replaced) {
  const folder f;
  choice_file first(f.file(), "device 1");
  first.choose("m=1", "tile 7");
  ASSERT_TRUE(first.save());
  choice_file other(f.file(), "device 2");
  EXPECT_EQ(other.find("m=1"), nullptr);
  EXPECT_NE(other.ignored().find("another device"), std::string::npos) << other.ignored();
  ASSERT_TRUE(other.save());
  EXPECT_TRUE(choice_file(f.file(), "device 2").ignored().empty());
  EXPECT_EQ(choice_file(f.file(), "device 2").find("m=1"), nullptr);
}
TEST(choice_file, that_was_cut_or_changed_anywhere_is_ignored) {
  const folder f;
  choice_file first(f.file(), "device 1");
  first.choose("m=1", "tile 7");
  first.choose("m=2", "tile 8");
  ASSERT_TRUE(first.save());
  const std::string whole = text_of(f.file());
  for (std::size_t n = 0; n + 1 < whole.size(); ++n) {
    std::ofstream(f.file(), std::ios::trunc) << whole.substr(0, n);
    EXPECT_FALSE(choice_file(f.file(), "device 1").ignored().empty()) << "cut to " << n << " bytes";
    auto changed = whole;
    changed[n] = changed[n] == 'x' ? 'y' : 'x';
    std::ofstream(f.file(), std::ios::trunc) << changed;
    const choice_file c(f.file(), "device 1");
    EXPECT_FALSE(c.ignored().empty()) << "byte " << n;
    EXPECT_EQ(c.find("m=1"), nullptr);
  }
}
TEST(choice_file, a_broken_line_spoils_no_choice) {
  const folder f;
  choice_file first(f.file(), "device 1");
  first.choose("m=1", "tile 7");
  ASSERT_TRUE(first.save());
  std::ofstream(f.file(), std::ios::app) << "no tab here\n";
  const choice_file broken(f.file(), "device 1");
  EXPECT_EQ(broken.find("m=1"), nullptr);
  EXPECT_NE(broken.ignored().find("signature"), std::string::npos);
}
TEST(choice_file, without_a_path_keeps_choices_in_memory_and_writes_nothing) {
  choice_file c;
  c.choose("m=1", "tile 7");
  EXPECT_FALSE(c.kept());
  EXPECT_TRUE(c.save());
  EXPECT_EQ(*c.find("m=1"), "tile 7");
}
TEST(choice_file, keeps_what_another_process_has_written_meanwhile) {
  const folder f;
  choice_file one(f.file(), "device 1"), other(f.file(), "device 1");
  one.choose("m=1", "tile 7");
  one.choose("m=2", "tile 8");
  other.choose("m=2", "tile 9");
  other.choose("m=3", "tile 9");
  ASSERT_TRUE(one.save());
  ASSERT_TRUE(other.save());
  const choice_file both(f.file(), "device 1");
  EXPECT_TRUE(both.ignored().empty());
  EXPECT_EQ(*both.find("m=1"), "tile 7");
  EXPECT_EQ(*both.find("m=2"), "tile 9") << "the later writer's own choice";
  EXPECT_EQ(*both.find("m=3"), "tile 9");
}
TEST(choice_file, that_is_larger_than_any_is_ignored_without_reading_it) {
  const folder f;
  std::filesystem::create_directories(f.at / "deeper");
  std::ofstream(f.file()) << "isotope choices 1\tdevice 1\n";
  std::filesystem::resize_file(f.file(), 17 << 20);
  EXPECT_NE(choice_file(f.file(), "device 1").ignored().find("17825792 bytes"), std::string::npos)
      << choice_file(f.file(), "device 1").ignored();
}
TEST(choice_file, in_a_folder_that_cannot_be_written_is_harmless) {
  choice_file c("/proc/none/choices", "device");
  c.choose("m=1", "tile 7");
  EXPECT_FALSE(c.save());
}

}  // namespace choice_file_test
}  // namespace isotope
