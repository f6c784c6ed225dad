# The GLSL kernels of the vulkan backend: finds a compiler, probes its features, and compiles each kernels/vulkan/**.comp to a C++ header.
include_guard(GLOBAL)

# Sets the compiler in ISOTOPE_GLSLANG, a validator (if any) in ISOTOPE_SPIRV_VAL, headers in ISOTOPE_VULKAN_HEADERS.
# `./quickstart --backend vulkan` unpacks a current compiler into build/glslang, which is preferred, since it knows all extensions. Each run searches again,
# so that a compiler that was installed later is found, unless the user has set one.
function(isotope_find_shader_tools)
  foreach(variable ISOTOPE_GLSLANG ISOTOPE_SPIRV_VAL)
    if(DEFINED CACHE{${variable}_FOUND} AND "$CACHE{${variable}}" STREQUAL "$CACHE{${variable}_FOUND}")
      unset(${variable} CACHE)
    endif()
    set(${variable}_given FALSE)
    if(DEFINED CACHE{${variable}})
      set(${variable}_given TRUE)
    endif()
  endforeach()
  set(private ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../../build/glslang/bin)
  find_program(ISOTOPE_GLSLANG NAMES glslang glslangValidator NAMES_PER_DIR HINTS ${private} DOC "compiler of the vulkan kernels")
  get_filename_component(beside "${ISOTOPE_GLSLANG}" DIRECTORY)  # the validator of the same version as the compiler
  find_program(ISOTOPE_SPIRV_VAL NAMES spirv-val HINTS ${beside} ${private} DOC "validator of the vulkan kernels")
  foreach(variable ISOTOPE_GLSLANG ISOTOPE_SPIRV_VAL)
    if(NOT ${variable}_given)
      set(${variable}_FOUND "${${variable}}" CACHE INTERNAL "")
    endif()
  endforeach()
  find_path(ISOTOPE_VULKAN_HEADERS NAMES vulkan/vulkan_core.h DOC "the Vulkan C headers")
  mark_as_advanced(ISOTOPE_GLSLANG ISOTOPE_SPIRV_VAL ISOTOPE_VULKAN_HEADERS)
endfunction()

# isotope_probe_shader(<ability>): sets ISOTOPE_SHADER_<ABILITY> to whether the compiler accepts probe/<ability>.comp. A crash counts as no.
function(isotope_probe_shader ability)
  string(TOUPPER ${ability} upper)
  set(stamp ${PROJECT_BINARY_DIR}/shaders/probe/${ability}.stamp)
  file(TIMESTAMP ${ISOTOPE_GLSLANG} compiler)
  set(key "${ISOTOPE_GLSLANG} ${compiler}")
  if(EXISTS ${stamp})
    file(READ ${stamp} known)
  endif()
  if(NOT DEFINED CACHE{ISOTOPE_SHADER_${upper}} OR NOT known STREQUAL key)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/shaders/probe)
    execute_process(
      COMMAND ${ISOTOPE_GLSLANG} -V --target-env vulkan1.3 -o ${PROJECT_BINARY_DIR}/shaders/probe/${ability}.spv
              ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/probe/${ability}.comp
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status STREQUAL "0")
      set(ISOTOPE_SHADER_${upper} TRUE CACHE INTERNAL "")
    else()
      set(ISOTOPE_SHADER_${upper} FALSE CACHE INTERNAL "")
    endif()
    file(WRITE ${stamp} "${key}")
  endif()
endfunction()

set(isotope_shader_abilities bda coopmat coopmat_bf16 coopmat2)

# isotope_compile_shaders(<root> <out> <prologue>): adds commands that make <out>/isotope/shaders/<module>.hpp for every module of kernels/vulkan, listed in
# `outputs`, and writes <out>/words.cpp, which defines all of them. <root> is kernels/vulkan or a folder that the build fills with the same files. <prologue>:
# see compile_shader.cmake; empty: none.
function(isotope_compile_shaders root folder prologue)
  set(listed ${PROJECT_SOURCE_DIR}/kernels/vulkan)
  set(lacks "")
  foreach(ability IN LISTS isotope_shader_abilities)
    string(TOUPPER ${ability} upper)
    if(NOT ISOTOPE_SHADER_${upper})
      list(APPEND lacks ${ability})
    endif()
  endforeach()
  set(out ${folder}/isotope/shaders)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${listed}/*.comp)
  file(GLOB_RECURSE parts CONFIGURE_DEPENDS ${listed}/*.glsl)
  list(TRANSFORM parts REPLACE "^${listed}" "${root}")
  set(outputs "")
  set(compiled "")
  set(all "")
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH stem ${listed} ${source})
    set(compiled_source ${root}/${stem})
    string(REGEX REPLACE "\\.comp$" "" stem ${stem})
    string(REGEX REPLACE "^(portable|native)/" "" stem ${stem})
    string(REPLACE "/" "_" stem ${stem})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} variants REGEX "^// variant [a-z0-9_]+:")
    if(NOT variants)
      set(variants "// variant :")
    endif()
    foreach(variant IN LISTS variants)
      string(REGEX MATCH "^// variant ([a-z0-9_]*):([^#]*)$" _ "${variant}")
      set(module ${stem})
      set(flags "${CMAKE_MATCH_2}")
      if(CMAKE_MATCH_1)
        set(module ${stem}_${CMAKE_MATCH_1})
      endif()
      set(missing "")
      set(needs "")
      if(flags MATCHES "needs ([a-z0-9_]+)")
        set(needs ${CMAKE_MATCH_1})
        if(CMAKE_MATCH_1 IN_LIST lacks)
          set(missing ${CMAKE_MATCH_1})
        endif()
        string(REGEX REPLACE "needs [a-z0-9_]+" "" flags "${flags}")
      endif()
      string(STRIP "${flags}" flags)
      add_custom_command(
        OUTPUT ${out}/${module}.hpp ${out}/${module}.words.hpp
        COMMAND ${CMAKE_COMMAND} -DGLSLANG=${ISOTOPE_GLSLANG} -DVALIDATOR=${ISOTOPE_SPIRV_VAL} -DSOURCE=${compiled_source} -DMODULE=${module} -DOUT=${out}
                "-DFLAGS=${flags} -I${root}" "-DMISSING=${missing}" -DNEEDS=${needs}
                -DPROLOGUE=${prologue} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/compile_shader.cmake
        DEPENDS ${compiled_source} ${parts} ${prologue} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/compile_shader.cmake ${PROJECT_BINARY_DIR}/shaders/probe/bda.stamp
        COMMENT "Compiling shader ${module}"
        VERBATIM)
      list(APPEND outputs ${out}/${module}.hpp)
      string(APPEND compiled "#include <isotope/shaders/${module}.words.hpp>
namespace isotope::vulkan::shaders {
extern const shader ${module};
const shader ${module}{\"${module}\", ${module}_words, \"${missing}\", \"${needs}\"};
}
")
      file(RELATIVE_PATH name ${listed} ${source})
      string(REPLACE ";" " " shown "${flags}")
      string(APPEND all "  {&shaders::${module}, \"${name}\", \"${shown}\"},\n")
    endforeach()
  endforeach()
  string(APPEND compiled "namespace isotope::vulkan {
std::span<const shader_variant> shader_variants() {
  static const shader_variant all[] = {\n${all}};
  return all;
}
}
")
  file(GENERATE OUTPUT ${folder}/words.cpp CONTENT "${compiled}")
  set(outputs ${outputs} PARENT_SCOPE)
endfunction()

# isotope_add_shader_words(<target> <root> <out> <prologue>): adds an object library with the words of all modules, like isotope_shader_words. A program
# that links it uses these words.
function(isotope_add_shader_words target root folder prologue)
  isotope_compile_shaders(${root} ${folder} "${prologue}")
  add_custom_target(${target}_modules DEPENDS ${outputs})
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${folder}/words.cpp)
  add_dependencies(${target} ${target}_modules)
  target_include_directories(${target} BEFORE PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE isotope_own)
endfunction()

# isotope_add_shaders(): the target isotope_shaders makes <build>/shaders/isotope/shaders/<module>.hpp for every module. A source makes one
# module, or one for each line `// variant NAME: -D... [needs ABILITY]`, called <stem>_NAME; sources in reference/ start with reference_.
# A module that needs a feature which the compiler lacks has no words.
function(isotope_add_shaders)
  if(NOT ISOTOPE_GLSLANG)
    isotope_refuse("${isotope_prefix}BACKEND=vulkan needs a GLSL compiler, and neither glslang nor glslangValidator was found. fix: sudo apt-get install glslang-tools, or cmake/backend/vulkan/get-glslang.sh build/glslang (no root rights needed), or ./quickstart deps --backend vulkan.")
  endif()
  if(NOT EXISTS "${ISOTOPE_GLSLANG}")
    isotope_refuse("ISOTOPE_GLSLANG='${ISOTOPE_GLSLANG}' is not there. fix: -UISOTOPE_GLSLANG looks for glslang and glslangValidator.")
  endif()
  if(NOT ISOTOPE_VULKAN_HEADERS)
    isotope_refuse("${isotope_prefix}BACKEND=vulkan needs the Vulkan headers, and vulkan/vulkan_core.h was not found. fix: sudo apt-get install libvulkan-dev, or ./quickstart deps --backend vulkan.")
  endif()
  set(lacks "")
  foreach(ability IN LISTS isotope_shader_abilities)
    isotope_probe_shader(${ability})
    string(TOUPPER ${ability} upper)
    if(NOT ISOTOPE_SHADER_${upper})
      list(APPEND lacks ${ability})
    endif()
  endforeach()
  if("bda" IN_LIST lacks)
    isotope_refuse("${isotope_prefix}BACKEND=vulkan: ${ISOTOPE_GLSLANG} cannot compile buffer references. fix: glslang 12 or later, or cmake/backend/vulkan/get-glslang.sh build/glslang.")
  endif()
  if(lacks)
    list(JOIN lacks ", " text)
    message(STATUS "isotope: ${ISOTOPE_GLSLANG} lacks ${text}: kernels for matrix units are left out; cmake/backend/vulkan/get-glslang.sh build/glslang brings a compiler that has them")
  endif()

  isotope_compile_shaders(${PROJECT_SOURCE_DIR}/kernels/vulkan ${PROJECT_BINARY_DIR}/shaders "")
  add_custom_target(isotope_shaders DEPENDS ${outputs})
  add_dependencies(isotope_device_code isotope_shaders)
  add_dependencies(isotope_device_headers isotope_shaders)
  target_include_directories(isotope INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/shaders>)
  target_include_directories(isotope SYSTEM INTERFACE $<BUILD_INTERFACE:${ISOTOPE_VULKAN_HEADERS}>)
  target_link_libraries(isotope INTERFACE ${CMAKE_DL_LIBS})
  add_dependencies(isotope isotope_shaders)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/shaders/isotope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers FILES_MATCHING PATTERN "*.hpp")

  # The words of all modules compiled once: where ISOTOPE_COMPILED_SHADERS is defined, headers only declare them.
  add_library(isotope_shader_words STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/shaders/words.cpp)
  target_link_libraries(isotope_shader_words PRIVATE isotope)
  target_compile_definitions(isotope_shader_words INTERFACE ISOTOPE_COMPILED_SHADERS)
endfunction()
