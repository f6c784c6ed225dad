#pragma once
/// Finds one of the backends that a program was built with by its name, e.g. from a command line or a configuration file.
#include <array>
#include <string>
#include <string_view>

#include "error.hpp"
#include "target.hpp"

namespace isotope {

/// What is known of a backend without opening a device.
struct backend_info {
  std::string_view name;
  int preference = 0;
};

/// `backend_list<backend::cpu>::find("metal")` is not_compiled_in.
template <Backend... B> struct backend_list {
  static constexpr std::array<backend_info, sizeof...(B)> all{backend_info{B::name, B::preference}...};

  /// @error not_compiled_in: the program has no backend of that name; the fix names the option and those it has
  static result<backend_info> find(std::string_view wanted) {
    std::string names;
    for (const auto& b : all) {
      if (b.name == wanted) return b;
      names += (names.empty() ? "" : ", ") + std::string(b.name);
    }
    const std::string asked(wanted);
    return fail(errc::not_compiled_in, "this program was built without the backend '" + asked + "'", {},
                "configure with -DBACKEND=" + asked + ", or choose one that it has: " + names);
  }
};

}  // namespace isotope
