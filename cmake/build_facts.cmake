# Writes the version and the commit of this build to the source file OUT, and changes the file only if one of them has changed:
#   cmake -DOUT=... -DSOURCE=... -DVERSION=X.Y.Z -P build_facts.cmake
# With PRINT=ON it prints the version instead: cmake -DPRINT=ON -DSOURCE=. -DVERSION=X.Y.Z -P cmake/build_facts.cmake
include(${CMAKE_CURRENT_LIST_DIR}/version.cmake)
isotope_version(version sha ${SOURCE} ${VERSION})
if(PRINT)
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo ${version})
  return()
endif()
file(
  CONFIGURE OUTPUT ${OUT}
  CONTENT [[#include <isotope_build_facts.hpp>
namespace isotope::facts {
const char version[] = "@version@";
const char git_sha[] = "@sha@";
}
]]
  @ONLY NEWLINE_STYLE UNIX)
