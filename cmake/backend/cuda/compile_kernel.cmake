# Compiles one module: OUT/MODULE.fatbin, OUT/MODULE.bytes.hpp with its bytes, OUT/MODULE.usage with registers and spills of its kernels, as ptxas reports them,
# and OUT/MODULE.d, which lists what it depends on. GENERATE and FLAGS are lists of options. Compressed code has a quarter of the size; drivers since 550 read it.
# cmake -DNVCC= -DSOURCE= -DMODULE= -DOUT= -DGENERATE= -DFLAGS= -P compile_kernel.cmake
set(fatbin ${OUT}/${MODULE}.fatbin)
execute_process(
  COMMAND ${NVCC} -std=c++20 -O3 -fatbin --compress-mode=size --resource-usage -allow-unsupported-compiler ${GENERATE} ${FLAGS} -MD -MF ${OUT}/${MODULE}.d -o ${fatbin} ${SOURCE}
  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT status STREQUAL "0")
  message(FATAL_ERROR " ${SOURCE}: ${text}")
endif()
file(WRITE ${OUT}/${MODULE}.usage "${text}")
string(REGEX REPLACE "(ptxas info[^\n]*|    [0-9]+ bytes stack frame[^\n]*)\n" "" text "${text}")
string(STRIP "${text}" text)
if(text)
  message("${text}")
endif()

# The rule in the depfile is for the header.
file(READ ${OUT}/${MODULE}.d rule)
string(REPLACE " " "\\ " target "${OUT}/${MODULE}.bytes.hpp")
string(REGEX REPLACE "^[^:]*:" "" rule "${rule}")
file(WRITE ${OUT}/${MODULE}.d "${target}:${rule}")

# A string literal compiles much faster than an array of numbers.
file(READ ${fatbin} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................................................)" "\\1\"\n\"" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
file(WRITE ${OUT}/${MODULE}.bytes.hpp "#pragma once
#include <string_view>
namespace isotope::cuda::fatbins {
alignas(16) inline constexpr char ${MODULE}_literal[] =
\"${bytes}\";
inline constexpr std::string_view ${MODULE}_bytes{${MODULE}_literal, ${size}};
}
")
