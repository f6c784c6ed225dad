#pragma once
/// What --version prints of a program that only reads and writes files, so that it includes no backend.
#include "version.hpp"

#include <string>
#include <string_view>

namespace support {

struct no_target {
  struct any {
    static constexpr std::string_view name = "any";
  };
  using backend = any;
  using precision = any;
  using kernel_set = any;
};

inline std::string version_without_device(std::string_view program) { return version_text(program, isotope::build_info<no_target>); }

}  // namespace support
