#pragma once
/// What --version prints: everything a bug report needs to know of the build.
#include <isotope/build_info.hpp>

#include <string>
#include <string_view>

namespace support {

inline std::string version_text(std::string_view program, const isotope::build& b) {
  const auto row = [](std::string_view key, std::string_view value) { return std::string(key) + std::string(value) + "\n"; };
  return std::string(program) + " " + std::string(b.version) + "\n" + row("backend    ", b.backend) + row("precision  ", b.precision) +
         row("kernels    ", b.kernels) + row("cpu arch   ", b.cpu_arch) + row("compiler   ", b.compiler) +
         row("build type ", b.build_type) + row("commit     ", b.git_sha) + row("options    ", b.options);
}

}  // namespace support
