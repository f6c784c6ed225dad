# Tests that are not GoogleTest programs: compile-fail, compile-time, header self-containment, consumers, repository rules. Each is a
# ctest test. Exit code 77 counts as skipped.
find_program(ISOTOPE_PYTHON python3)
mark_as_advanced(ISOTOPE_PYTHON)
if(NOT ISOTOPE_PYTHON)
  isotope_dependency_row(python3 minimum packages)
  isotope_missing(python3 ${minimum} ${packages})
endif()

# The flags of a consumer of isotope::isotope and our warnings, for checks that call the compiler directly.
set(consumer_flags
    -std=c++20 ${isotope_flags_${CMAKE_CXX_COMPILER_ID}} -I${PROJECT_SOURCE_DIR}/include -DISOTOPE_BACKEND=${isotope_backend}
    -DISOTOPE_PRECISION=${isotope_precision} -DISOTOPE_KERNELS=${isotope_kernels})
foreach(package Boost::headers Eigen3::Eigen CLI11::CLI11 isotope_dep_tomlplusplus isotope_dep_protozero isotope_dep_xxhash isotope_dep_utf8proc)
  if(TARGET ${package})
    get_target_property(directories ${package} INTERFACE_INCLUDE_DIRECTORIES)
    foreach(directory IN LISTS directories)
      get_filename_component(directory ${directory} REALPATH)
      if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
        list(APPEND consumer_flags -isystem ${directory})
      endif()
    endforeach()
  endif()
endforeach()
set(warning_flags -Wall -Wextra -Wconversion -Wshadow -Werror)
if(isotope_cpu_arch)
  set(arch_flags -march=${isotope_cpu_arch})
else()
  set(arch_flags "")
endif()

# tests/compile_fail/*.cpp must not compile, and one `error:` line must match the regex of the first line, `// expect: <regex>`.
file(GLOB sources CONFIGURE_DEPENDS compile_fail/*.cpp)
foreach(source IN LISTS sources)
  get_filename_component(stem ${source} NAME_WE)
  add_test(NAME compile_fail.${stem} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/run.sh ${source} ${CMAKE_CXX_COMPILER} ${consumer_flags})
  set_tests_properties(compile_fail.${stem} PROPERTIES LABELS compile_fail TIMEOUT 300)
endforeach()

# tests/compile_time/*.cpp must compile within the limits of the first line, `// limit: ratio=6 megabytes=1500 flags=-O2`: CPU time as a multiple of
# that of a reference file, and memory.
if(NOT isotope_option_SANITIZE)
  file(GLOB sources CONFIGURE_DEPENDS compile_time/*.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(stem ${source} NAME_WE)
    add_test(NAME compile_time.${stem} COMMAND ${ISOTOPE_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/compile_time/run.py ${source} ${CMAKE_CXX_COMPILER}
                                               ${consumer_flags})
    set_tests_properties(compile_time.${stem} PROPERTIES LABELS compile_time TIMEOUT 300 RUN_SERIAL TRUE)
  endforeach()
endif()

# Every public header must compile alone with our warnings. This is tested in the build with clang for another backend than the host's, which has the most
# headers and is fastest. Other builds compile all headers together in one translation unit, with the warnings of their compiler. The headers of a backend may
# include generated files, so they are compiled only in builds for that backend; headers.of_<backend> compiles them without those that the host's build has.
if(NOT isotope_option_SANITIZE)
  set(each_alone FALSE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND NOT isotope_backend STREQUAL isotope_host)
    set(each_alone TRUE)
  endif()
  set(other_backends ${isotope_backends})
  list(REMOVE_ITEM other_backends ${isotope_compiled_backends})
  set(all_headers "")
  set(backend_headers "")
  set(device_flags "")
  get_target_property(directories isotope INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(system_directories isotope INTERFACE_SYSTEM_INCLUDE_DIRECTORIES)
  foreach(entry IN LISTS directories)
    string(REGEX REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1" directory "${entry}")
    if(directory STREQUAL entry OR directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      continue()
    elseif(entry IN_LIST system_directories)
      list(APPEND device_flags -isystem ${directory})
    else()
      list(APPEND device_flags -I${directory})
    endif()
  endforeach()
  set(check_header ${CMAKE_CXX_COMPILER} ${consumer_flags} ${device_flags} ${warning_flags} ${arch_flags} -fsyntax-only)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include/*.hpp ${PROJECT_SOURCE_DIR}/kernels/*.hpp)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "^include/" "" path ${header})
    string(REGEX REPLACE "^kernels/" "isotope/kernels/" path ${path})
    set(elsewhere FALSE)
    foreach(backend IN LISTS other_backends)
      if(path MATCHES "/${backend}[/.]")
        set(elsewhere TRUE)
      endif()
    endforeach()
    if(elsewhere)
      continue()
    endif()
    string(APPEND all_headers "#include <${path}>\n")
    if(path MATCHES "/${isotope_backend}[/.]")
      string(APPEND backend_headers "#include <${path}>\n")
    endif()
    if(each_alone)
      set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${path}.cpp)
      file(CONFIGURE OUTPUT ${source} CONTENT "#include <${path}>\n")
      add_test(NAME headers.${path} COMMAND ${check_header} ${source})
      set_tests_properties(headers.${path} PROPERTIES LABELS headers TIMEOUT 120)
    endif()
  endforeach()
  # .ci/lint tidy uses this file, too.
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp CONTENT "${all_headers}")
  add_library(isotope_all_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp)
  isotope_program_libraries(isotope_all_headers)
  add_test(NAME headers.together COMMAND ${check_header} ${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp)
  set_tests_properties(headers.together PROPERTIES LABELS headers TIMEOUT 600)
  if(NOT isotope_backend STREQUAL isotope_host)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/backend_headers.cpp CONTENT "${backend_headers}")
    add_test(NAME headers.of_${isotope_backend} COMMAND ${check_header} ${CMAKE_CURRENT_BINARY_DIR}/backend_headers.cpp)
    set_tests_properties(headers.of_${isotope_backend} PROPERTIES LABELS "headers;${isotope_backend}" TIMEOUT 600)
  endif()
  add_test(NAME headers.no_exceptions COMMAND ${CMAKE_CXX_COMPILER} ${consumer_flags} ${warning_flags} -fno-exceptions -fno-rtti -S -o /dev/null
                                              ${CMAKE_CURRENT_SOURCE_DIR}/extend/no_exceptions.cpp)
  set_tests_properties(headers.no_exceptions PROPERTIES LABELS headers TIMEOUT 120)
endif()

# A user's project, with the four ways to use the library. Tests configure it with the generator of this build, which is known
# to exist. The property ISOTOPE_QUICK_OPTIONS of isotope_device_code has options with which a backend compiles less device code.
if(NOT isotope_option_SANITIZE)
  get_target_property(options isotope_device_code ISOTOPE_QUICK_OPTIONS)
  if(NOT options)
    set(options "")
  endif()
  foreach(way find_package add_subdirectory fetch_content plain)
    add_test(
      NAME consumer.${way}
      COMMAND
        ${CMAKE_COMMAND} -DWAY=${way} -DSOURCE=${PROJECT_SOURCE_DIR} -DBUILD=${PROJECT_BINARY_DIR} -DCXX=${CMAKE_CXX_COMPILER}
        -DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer/${way} -DBACKEND=${isotope_backend} -DPRECISION=${isotope_precision} "-DOPTIONS=${options}" -P
        ${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.cmake)
    set_tests_properties(consumer.${way} PROPERTIES LABELS consumer TIMEOUT 600 ENVIRONMENT "CMAKE_GENERATOR=${CMAKE_GENERATOR}"
                                                 SKIP_REGULAR_EXPRESSION "skipped: ")
  endforeach()
endif()

# Rules of the repository, and tests of the checkers: tests/repo/*_test.sh and tests/<backend>/repo/*_test.sh, each with the arguments
# SOURCE_DIR BINARY_DIR COMPILER.
file(GLOB sources CONFIGURE_DEPENDS repo/*_test.sh */repo/*_test.sh)
foreach(source IN LISTS sources)
  get_filename_component(stem ${source} NAME_WE)
  string(REGEX REPLACE "_test$" "" stem ${stem})
  add_test(NAME repo.${stem} COMMAND sh ${source} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${CMAKE_CXX_COMPILER})
  set_tests_properties(repo.${stem} PROPERTIES LABELS repo TIMEOUT 300 SKIP_RETURN_CODE 77 ENVIRONMENT "CMAKE_GENERATOR=${CMAKE_GENERATOR}")
endforeach()

# kernels/README.md must agree with the kernel lists and with the verdicts of isotope-conform on the present kernels. Kernels that can be judged without a GPU
# must not have stale marks.
add_executable(kernel_table extend/kernel_table.cpp)
isotope_find(Eigen3)
target_link_libraries(kernel_table PRIVATE isotope_own isotope_dep_Eigen3 isotope_io)
target_compile_options(kernel_table PRIVATE -O0)
set(marks ${ISOTOPE_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/extend/kernel_marks.py)
set(conformance ${PROJECT_SOURCE_DIR}/kernels/conformance.json)
add_test(NAME extend.kernel_marks COMMAND ${ISOTOPE_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/extend/kernel_marks_test.py)
add_test(NAME extend.kernels_without_a_gpu_are_judged COMMAND ${marks} stale ${conformance} cpu,llvmpipe ${PROJECT_SOURCE_DIR})
set_tests_properties(extend.kernel_marks extend.kernels_without_a_gpu_are_judged PROPERTIES LABELS extend TIMEOUT 60)
if(NOT isotope_backend STREQUAL isotope_host)  # this build also has the kernels of the host
  isotope_label_targets(kernel_table ${isotope_backend})
  set(digests ${CMAKE_CURRENT_BINARY_DIR}/digests.json)
  list(JOIN marks "' '" quoted)
  add_test(
    NAME ${isotope_backend}.kernel_table
    COMMAND sh -c "'${quoted}' digests . >'${digests}' && '$<TARGET_FILE:kernel_table>' '${conformance}' '${digests}' kernels/README.md | diff -u kernels/README.md -"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${isotope_backend}.kernel_table PROPERTIES LABELS ${isotope_backend} TIMEOUT 60)
endif()

# The tables of Unicode are those of utf8proc. The program says that it is skipped where utf8proc has another version of Unicode.
add_executable(unicode_tables extend/unicode_tables.cpp)
target_link_libraries(unicode_tables PRIVATE isotope_own isotope_dep_utf8proc)
isotope_label_targets(unicode_tables extend)
foreach(table IN ITEMS classes:unicode_tables decompositions:unicode_decompositions)
  string(REPLACE ":" ";" table ${table})
  list(GET table 0 what)
  list(GET table 1 file)
  add_test(NAME extend.unicode_${what}
           COMMAND sh -c "'$<TARGET_FILE:unicode_tables>' ${what} >'${CMAKE_CURRENT_BINARY_DIR}/${file}.txt' || exit $?; diff -u include/isotope/io/${file}.hpp '${CMAKE_CURRENT_BINARY_DIR}/${file}.txt'"
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(extend.unicode_${what} PROPERTIES LABELS extend TIMEOUT 60 SKIP_RETURN_CODE 77)
endforeach()

# Limits on the size of programs without symbols. Programs that the compiler planned contain only the kernels that they run: at most 3 MB. Those that plan
# at run time contain all kernels (isotope-train has 5.7 MB with clang, which unrolls more, and 4.8 MB with g++), and isotope-train a text of 1.1 MB, a report page of 32 KB and the prediction of a step of 32 KB. Device code
# that a backend compiles for many devices is not counted: the property ISOTOPE_CODE of isotope_device_code is its folder.
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT isotope_option_SANITIZE)
  get_target_property(code isotope_device_code ISOTOPE_CODE)
  set(uncounted "")
  if(code)
    set(uncounted --code ${code})
  endif()
  add_test(NAME size.static_programs COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/repo/size.sh 3072 ${uncounted} ${PROJECT_BINARY_DIR}/examples/quickstart
                                             ${PROJECT_BINARY_DIR}/examples/isotope-mlp)
  add_test(NAME size.programs COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/repo/size.sh 7680 ${uncounted} ${PROJECT_BINARY_DIR}/examples/isotope-train
                                      ${PROJECT_BINARY_DIR}/examples/isotope-generate ${PROJECT_BINARY_DIR}/examples/isotope-embed
                                      ${PROJECT_BINARY_DIR}/examples/isotope-serve)
  set_tests_properties(size.static_programs size.programs PROPERTIES LABELS size SKIP_RETURN_CODE 77)
endif()

# Programs do not link a driver. They open one at run time, and say what to install if there is none.
add_test(NAME links.programs COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/repo/links.sh ${PROJECT_BINARY_DIR}/examples/isotope-train
                                     ${PROJECT_BINARY_DIR}/examples/isotope-generate ${PROJECT_BINARY_DIR}/examples/isotope-info
                                     ${PROJECT_BINARY_DIR}/examples/isotope-mlp ${PROJECT_BINARY_DIR}/examples/isotope-embed
                                     ${PROJECT_BINARY_DIR}/examples/isotope-serve ${PROJECT_BINARY_DIR}/examples/quickstart)
set_tests_properties(links.programs PROPERTIES LABELS selected SKIP_RETURN_CODE 77)

# Tests of the programs as a user runs them: exit codes, messages, files.
add_subdirectory(programs)

# Planted bugs, which isotope-conform must find.
include(mutants/mutants.cmake)
