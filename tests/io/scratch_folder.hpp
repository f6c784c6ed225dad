#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace isotope {

/// A temporary folder for one test, which is removed at its end.
class scratch_folder {
 public:
  scratch_folder() {
    std::string made = ::testing::TempDir() + "/isotope-XXXXXX";
    if (::mkdtemp(made.data()) != nullptr) path_ = made;
    EXPECT_FALSE(path_.empty()) << "no scratch folder at " << made;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  std::string at(std::string_view file) const { return path_ / file; }
  /// The sorted names of the files in a folder.
  std::vector<std::string> names(std::string_view folder) const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_ / folder)) out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string put(std::string_view file, std::string_view text) const {
    std::ofstream(at(file), std::ios::binary) << text;
    return at(file);
  }
  std::string read(std::string_view file) const {
    std::ifstream in(at(file), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace isotope
