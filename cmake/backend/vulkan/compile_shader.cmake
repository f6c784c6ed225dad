# Compiles one module: OUT/MODULE.hpp declares it, OUT/MODULE.words.hpp holds its SPIR-V. NEEDS is the compiler feature that the source needs; if the compiler
# lacks it, MISSING is that feature and the module has no words.
# PROLOGUE is a .glsl file, whose function `void <stem>()` is called at the start of main.
# cmake -DGLSLANG= -DVALIDATOR= -DSOURCE= -DMODULE= -DOUT= -DFLAGS= -DMISSING= -DNEEDS= [-DPROLOGUE=] -P compile_shader.cmake
file(MAKE_DIRECTORY ${OUT})
set(words "")
if(NOT MISSING)
  set(spv ${OUT}/${MODULE}.spv)
  separate_arguments(flags UNIX_COMMAND "${FLAGS}")
  set(input ${SOURCE})
  if(PROLOGUE)
    file(READ ${SOURCE} text)
    get_filename_component(folder ${SOURCE} DIRECTORY)
    get_filename_component(prologue ${PROLOGUE} NAME_WE)
    get_filename_component(beside ${PROLOGUE} DIRECTORY)
    string(REGEX REPLACE "\nvoid main\\(\\)" "\nvoid kernel_main()" text "${text}")
    set(input ${OUT}/${MODULE}.comp)
    file(WRITE ${input} "${text}#include \"${prologue}.glsl\"\nvoid main() {\n  ${prologue}();\n  kernel_main();\n}\n")
    list(PREPEND flags -I${folder} -I${beside})
  endif()
  execute_process(
    COMMAND ${GLSLANG} -V -g0 --target-env vulkan1.3 --quiet ${flags} -o ${spv} ${input}
    RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status STREQUAL "0")
    message(FATAL_ERROR " ${SOURCE}: ${text}")
  endif()
  if(VALIDATOR AND NOT NEEDS MATCHES "coopmat")  # older validators do not know cooperative matrices
    set(validate TRUE)
  elseif(VALIDATOR)
    execute_process(COMMAND ${VALIDATOR} --version OUTPUT_VARIABLE version)
    string(REGEX MATCH "v(20[0-9][0-9])" _ "${version}")
    if(CMAKE_MATCH_1 GREATER_EQUAL 2025)
      set(validate TRUE)
    endif()
  endif()
  if(validate)
    execute_process(
      COMMAND ${VALIDATOR} --target-env vulkan1.3 --scalar-block-layout ${spv}
      RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
    if(NOT status STREQUAL "0")
      message(FATAL_ERROR " ${SOURCE} (${MODULE}): spirv-val: ${text}")
    endif()
  endif()
  file(READ ${spv} hex HEX)
  string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
  string(REGEX REPLACE "((0x........,)(0x........,)(0x........,)(0x........,)(0x........,)(0x........,)(0x........,)(0x........,))" "\\1\n" words "${words}")
endif()

function(write_changed file text)
  if(EXISTS ${file})
    file(READ ${file} old)
    if(old STREQUAL text)
      file(TOUCH ${file})
      return()
    endif()
  endif()
  file(WRITE ${file} "${text}")
endfunction()

if(MISSING)
  set(array "inline constexpr std::span<const std::uint32_t> ${MODULE}_words;")
else()
  set(array "inline constexpr std::uint32_t ${MODULE}_words[] = {\n${words}};")
endif()
write_changed(${OUT}/${MODULE}.words.hpp "#pragma once
#include <isotope/backend/vulkan/launch.hpp>
namespace isotope::vulkan::shaders {
${array}
}
")
write_changed(${OUT}/${MODULE}.hpp "#pragma once
#if defined(ISOTOPE_COMPILED_SHADERS)
#include <isotope/backend/vulkan/launch.hpp>
namespace isotope::vulkan::shaders {
extern const shader ${MODULE};
}
#else
#include \"${MODULE}.words.hpp\"
namespace isotope::vulkan::shaders {
inline constexpr shader ${MODULE}{\"${MODULE}\", ${MODULE}_words, \"${MISSING}\", \"${NEEDS}\"};
}
#endif
")
