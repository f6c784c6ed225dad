#pragma once
/// The target that -DBACKEND, -DPRECISION and -DKERNELS choose. Only programs include this header, and only this header reads the choice macros
/// ISOTOPE_BACKEND, ISOTOPE_PRECISION and ISOTOPE_KERNELS, whose values are names. The defaults are cpu, the backend's default precision, and native.
#include "core/compiler.hpp"
#include "core/target.hpp"

#if !defined(ISOTOPE_BACKEND)
#define ISOTOPE_BACKEND cpu
#endif
#if !defined(ISOTOPE_KERNELS)
#define ISOTOPE_KERNELS native
#endif
#define ISOTOPE_HEADER_OF(name) <isotope/backend/name.hpp>
#define ISOTOPE_HEADER(name) ISOTOPE_HEADER_OF(name)
#if __has_include(ISOTOPE_HEADER(ISOTOPE_BACKEND))
#include ISOTOPE_HEADER(ISOTOPE_BACKEND)
#else
#define ISOTOPE_TEXT_OF(name) #name
#define ISOTOPE_TEXT(name) ISOTOPE_TEXT_OF(name)
static_assert(false,
              "ISOTOPE_BACKEND='" ISOTOPE_TEXT(
                  ISOTOPE_BACKEND) "' is no backend: each is a file include/isotope/backend/<name>.hpp, its name a value of -DBACKEND");
#undef ISOTOPE_TEXT
#undef ISOTOPE_TEXT_OF
#endif

namespace isotope {

using selected_backend = backend::ISOTOPE_BACKEND;
#if defined(ISOTOPE_PRECISION)
using selected = target<selected_backend, precision::ISOTOPE_PRECISION, kernels::ISOTOPE_KERNELS>;
#else
using selected = target<selected_backend, selected_backend::default_precision, kernels::ISOTOPE_KERNELS>;
#endif

}  // namespace isotope

#undef ISOTOPE_HEADER
#undef ISOTOPE_HEADER_OF
