#pragma once
/// The facts of a program's build: version, options, compiler and commit, as one constant for --version, reports and bug reports.
#include <string_view>

#if __has_include(<isotope_build_facts.hpp>)
#include <isotope_build_facts.hpp>  // generated for the programs of this repository only
#else
#define ISOTOPE_FACT_VERSION "0.1.0"
#define ISOTOPE_FACT_GIT_SHA "unknown"
#define ISOTOPE_FACT_CPU_ARCH "unknown"
#define ISOTOPE_FACT_COMPILER __VERSION__
#define ISOTOPE_FACT_BUILD_TYPE "unknown"
#define ISOTOPE_FACT_OPTIONS "unknown"
#endif

namespace isotope {

struct build {
  const char* version;       // of the library: cmake/version.cmake
  std::string_view backend;  // names of the target's parts
  std::string_view precision;
  std::string_view kernels;
  std::string_view cpu_arch;    // the -march of the program
  std::string_view compiler;    // name and version
  std::string_view build_type;  // CMAKE_BUILD_TYPE
  const char* git_sha;          // the commit, with -dirty if files differ from it
  std::string_view options;     // every build option as NAME=value
};

/// The facts of this translation unit for a program of target `T`: `build_info<iso::selected>`.
/// It has internal linkage, so parts of a program that are compiled for different targets or with different compilers or flags have their own facts.
template <class T>
static constexpr build build_info{ISOTOPE_FACT_VERSION,    T::backend::name,      T::precision::name,
                                  T::kernel_set::name,     ISOTOPE_FACT_CPU_ARCH, ISOTOPE_FACT_COMPILER,
                                  ISOTOPE_FACT_BUILD_TYPE, ISOTOPE_FACT_GIT_SHA,  ISOTOPE_FACT_OPTIONS};

}  // namespace isotope

#undef ISOTOPE_FACT_VERSION
#undef ISOTOPE_FACT_GIT_SHA
#undef ISOTOPE_FACT_CPU_ARCH
#undef ISOTOPE_FACT_COMPILER
#undef ISOTOPE_FACT_BUILD_TYPE
#undef ISOTOPE_FACT_OPTIONS
