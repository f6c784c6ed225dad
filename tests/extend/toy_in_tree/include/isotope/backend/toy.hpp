#pragma once
/// Adds the toy backend to a copy of the source tree, like one of the library's own backends.
#include "toy/toy_backend.hpp"

#if !defined(TOY_IS_CONFIGURED) || !defined(TOY_IS_COMPILED)
#error "a hook of cmake/backend/toy.cmake was not called"
#endif

namespace isotope::backend {

struct toy : ::toy::backend {
  static constexpr std::string_view name = "toy";
  static constexpr int preference = 99;
  using default_precision = precision::f32;
};
static_assert(Backend<toy>);

}  // namespace isotope::backend
