// The facts of the build reach a program as constants.
#include <gtest/gtest.h>

#include <isotope/build_info.hpp>
#include <isotope/core/target.hpp>

#include <string>
#include <string_view>

namespace build_info_test {
struct some_backend {
  static constexpr std::string_view name = "some";
};
constexpr auto& info = isotope::build_info<isotope::target<some_backend, isotope::precision::bf16, isotope::kernels::portable>>;
static_assert(info.backend == "some" && info.precision == "bf16" && info.kernels == "portable");

TEST(build_info, names_the_commit_the_compiler_and_every_option) {
  const std::string_view version = info.version, sha = info.git_sha;
  EXPECT_TRUE(version.starts_with("0.1.0")) << version;
  EXPECT_GE(sha.size(), 7u) << sha;
  const std::string_view commit = sha.substr(0, sha.find('-'));
  EXPECT_TRUE(sha == "unknown" || version.find('+') == version.npos || version.find("+g" + std::string(commit)) != version.npos)
      << version << ", " << sha;
  EXPECT_FALSE(info.compiler.empty());
  for (const char* option : {"BACKEND=", "PRECISION=", "KERNELS=", "CPU_ARCH=", "SANITIZE="}) {
    EXPECT_NE(info.options.find(option), std::string_view::npos) << option << " is not in " << info.options;
  }
}
}  // namespace build_info_test
