# The backends: each is a file cmake/backend/<name>.cmake, which calls isotope_backend() once and may define these functions, the hooks of the build:
#
#   isotope_<name>_usable(<result>)  whether this machine can build the backend, for BACKEND=auto; without this function it can
#   isotope_<name>_configure()       called if the backend is chosen: finds its tools, adds its device code, and adds what users need to the target isotope
#   isotope_<name>_compiled()        called when the libraries isotope_<name>_<precision> of its kernels exist
#   isotope_<name>_package()         may set what is special in the package of its programs: package/package.cmake
#
# It may set isotope_<name>_optimised_tests, the label of its tests that run for longer than they compile; without it, all of them are optimised.
#
# The folder cmake/backend/<name>/ may contain dependencies.txt, its packages (groups <name> and <name>-tests); quickstart.sh, hooks of ./quickstart; jobs and
# nightly, which continue the lists .ci/jobs and .ci/nightly. Its tests may have a tests.cmake, see tests/CMakeLists.txt.
include_guard(GLOBAL)

# Each preset in PRESETS also exists for this backend, as <preset>-<name>. Each precision has the preset <name>-<precision>. See presets.cmake.
function(isotope_backend)
  cmake_parse_arguments(arg "" "RANK;DEFAULT_PRECISION;REASON" "PRECISIONS;PRESETS" ${ARGN})
  foreach(field RANK DEFAULT_PRECISION REASON PRECISIONS PRESETS)
    set(isotope_${backend}_${field} "${arg_${field}}" PARENT_SCOPE)
  endforeach()
endfunction()

# isotope_hook(<backend> <hook> [<argument>...]): calls a hook in the caller's scope, if the backend defines it.
macro(isotope_hook backend hook)
  if(COMMAND isotope_${backend}_${hook})
    cmake_language(CALL isotope_${backend}_${hook} ${ARGN})
  endif()
endmacro()

set(isotope_watch CONFIGURE_DEPENDS)
if(CMAKE_SCRIPT_MODE_FILE)
  set(isotope_watch "")
endif()
file(GLOB isotope_backend_files ${isotope_watch} ${CMAKE_CURRENT_LIST_DIR}/backend/*.cmake)
set(isotope_backends "")
foreach(file IN LISTS isotope_backend_files)
  get_filename_component(backend ${file} NAME_WE)
  include(${file})
  list(APPEND isotope_backends ${backend})
endforeach()
list(SORT isotope_backends)
