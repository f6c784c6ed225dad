# Functions for the programs, tests and benchmarks of this repository; consumers need only isotope::isotope.
include_guard(GLOBAL)

# Flags of our own targets, which consumers do not get.
add_library(isotope_own INTERFACE)
target_compile_options(isotope_own INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror)
# g++ 12 and 13 at -O3 give false warnings of oversized copies in std::string, of uninitialised registers in their AVX-512 header, and of writes past the end
# of shapes (GCC bugs 105329, 105651, 105593). clang and the address sanitizer check our code instead.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  target_compile_options(isotope_own INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized)
endif()
# Kernels return vectors of 32 and 64 bytes from functions that are always inlined. Where a processor has no registers of that size, g++ warns of how they would
# be passed in a call, of which there is none.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(isotope_own INTERFACE -Wno-psabi)
endif()
if(isotope_cpu_arch)
  target_compile_options(isotope_own INTERFACE -march=${isotope_cpu_arch})
endif()
# A program for this machine alone has its relocations as bits in place of 24 bytes each, 80 KB in all, where the C library can read them (glibc 2.36 on).
if(isotope_cpu_arch STREQUAL native AND NOT isotope_option_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  include(CheckCXXSourceRuns)
  set(isotope_small_links -Wl,-z,pack-relative-relocs -Wl,--gc-sections)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${isotope_small_links})
  check_cxx_source_runs("int x; int* volatile at = &x; int main() { return *at; }" ISOTOPE_PACKS_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(ISOTOPE_PACKS_RELOCATIONS)
    target_link_options(isotope_own INTERFACE ${isotope_small_links})
  endif()
endif()
if(isotope_option_SANITIZE)
  string(REPLACE ";" "," sanitize "${isotope_option_SANITIZE}")
  target_compile_options(isotope_own INTERFACE -fsanitize=${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(isotope_own INTERFACE -fsanitize=${sanitize})
  # With these three, g++ does not treat `&function != nullptr` as a constant, which the planner needs for every op (GCC bug 71962).
  # The address sanitizer finds the same errors.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(isotope_own INTERFACE -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()
target_link_libraries(isotope_own INTERFACE isotope::isotope)

include(${CMAKE_CURRENT_LIST_DIR}/io.cmake)
target_link_libraries(isotope_json PRIVATE isotope_own)

# The specifications of the ops, compiled once for isotope-conform, its tests and the planted bugs.
add_library(isotope_specifications STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/examples/support/specifications.cpp)
target_link_libraries(isotope_specifications PRIVATE isotope_own)
target_compile_options(isotope_specifications PRIVATE $<$<CONFIG:Release>:-O2>)

# The kernels of one backend and precision, compiled once for all programs and tests: include/isotope/backend/<backend>/compiled.hpp. Every build has those of
# the host's backend.
set(isotope_host cpu)
set(isotope_compiled_backends ${isotope_host} ${isotope_backend})
list(REMOVE_DUPLICATES isotope_compiled_backends)
foreach(backend IN LISTS isotope_compiled_backends)
  file(GLOB compiled CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/${backend}/compiled/*.cpp)
  foreach(source IN LISTS compiled)
    get_filename_component(kernel_precision ${source} NAME_WE)
    set(library isotope_${backend}_${kernel_precision})
    string(REGEX REPLACE "^${isotope_host}_" "" name ${backend}_${kernel_precision})
    string(TOUPPER ${name} upper)
    add_library(${library} STATIC EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${library} PRIVATE isotope_own)
    target_compile_definitions(${library} INTERFACE ISOTOPE_COMPILED_${upper})
  endforeach()
endforeach()

isotope_hook(${isotope_backend} compiled)

# isotope_backend_libraries(<target> <precision>...): links the compiled kernels of the chosen backend and of the host's backend in these precisions.
function(isotope_backend_libraries target)
  foreach(backend IN LISTS isotope_compiled_backends)
    foreach(kernel_precision IN LISTS ARGN)
      if(TARGET isotope_${backend}_${kernel_precision})
        target_link_libraries(${target} PRIVATE isotope_${backend}_${kernel_precision})
      endif()
    endforeach()
  endforeach()
endfunction()

# isotope_backend_definitions(<target> <precision>...): says that these kernels are compiled apart, without linking them.
function(isotope_backend_definitions target)
  foreach(kernel_precision IN LISTS ARGN)
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:isotope_${isotope_host}_${kernel_precision},INTERFACE_COMPILE_DEFINITIONS>)
  endforeach()
endfunction()

# isotope_program_packages(<target>): links the packages that programs and tests may use, all with SYSTEM includes.
function(isotope_program_packages target)
  isotope_find(Eigen3)
  target_link_libraries(${target} PRIVATE isotope_own isotope_dep_Eigen3 isotope_io)
endfunction()

# isotope_program_libraries(<target>): links these packages and the compiled kernels of the build's precision.
function(isotope_program_libraries target)
  isotope_backend_libraries(${target} ${isotope_precision})
  isotope_program_packages(${target})
endfunction()

# The header <isotope_build_facts.hpp>, which include/isotope/build_info.hpp includes if it exists, and the library isotope_build_facts with the version and
# the commit. These are found out again in every build. They are in a file of their own, so that a commit compiles only that file again.
set(isotope_facts_dir ${PROJECT_BINARY_DIR}/facts)
set(isotope_options_text
    "BACKEND=${isotope_backend} PRECISION=${isotope_precision} KERNELS=${isotope_kernels} CPU_ARCH=${isotope_cpu_arch} SANITIZE=${isotope_option_SANITIZE}")
string(REPLACE ";" "," isotope_options_text "${isotope_options_text}")
file(
  CONFIGURE OUTPUT ${isotope_facts_dir}/isotope_build_facts.hpp
  CONTENT [[#pragma once
namespace isotope::facts {
extern const char version[];
extern const char git_sha[];
}
#define ISOTOPE_FACT_VERSION ::isotope::facts::version
#define ISOTOPE_FACT_GIT_SHA ::isotope::facts::git_sha
#define ISOTOPE_FACT_CPU_ARCH "@isotope_cpu_arch@"
#define ISOTOPE_FACT_COMPILER "@CMAKE_CXX_COMPILER_ID@ @CMAKE_CXX_COMPILER_VERSION@"
#define ISOTOPE_FACT_BUILD_TYPE "@CMAKE_BUILD_TYPE@"
#define ISOTOPE_FACT_OPTIONS "@isotope_options_text@"
]]
  @ONLY NEWLINE_STYLE UNIX)
add_custom_target(
  isotope_find_commit
  COMMAND ${CMAKE_COMMAND} -DOUT=${isotope_facts_dir}/commit.cpp -DSOURCE=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -P
          ${PROJECT_SOURCE_DIR}/cmake/build_facts.cmake
  BYPRODUCTS ${isotope_facts_dir}/commit.cpp
  VERBATIM)
add_library(isotope_build_facts STATIC EXCLUDE_FROM_ALL ${isotope_facts_dir}/commit.cpp)
add_dependencies(isotope_build_facts isotope_find_commit)
target_include_directories(isotope_build_facts PUBLIC ${isotope_facts_dir})
target_compile_features(isotope_build_facts PRIVATE cxx_std_20)

# isotope_use_build_facts(<target>): gives a target the facts. It is linked again after every commit.
function(isotope_use_build_facts target)
  target_link_libraries(${target} PRIVATE isotope_build_facts)
endfunction()

# isotope_embed(<target> <symbol> <file>...): adds `extern const char symbol[]` and `extern const std::size_t symbol_size` to a target,
# the concatenated bytes of the files in the given order. They are embedded again if a file changes.
function(isotope_embed target symbol)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.files)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp)
  list(JOIN ARGN "\n" lines)
  file(GENERATE OUTPUT ${list} CONTENT "${lines}\n")
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DLIST=${list} -DOUT=${source} -DSYMBOL=${symbol} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${list} ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()

# The default corpus of programs that train: the headers of this library without its kernels, in sorted order, embedded once.
function(isotope_embed_corpus target)
  if(NOT TARGET isotope_corpus)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include/*.hpp)
    list(SORT headers)
    list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/)
    add_library(isotope_corpus STATIC EXCLUDE_FROM_ALL)
    isotope_embed(isotope_corpus isotope_corpus ${headers})
  endif()
  target_link_libraries(${target} PRIVATE isotope_corpus)
endfunction()
