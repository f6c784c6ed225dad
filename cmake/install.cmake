# Installs headers, the CMake package and isotope.pc. kernels/ is beside include/ in the source tree, and inside it when installed. A backend with generated
# headers installs these in its configure hook, with COMPONENT headers. Installs of builds for several backends into one folder add up: the last one gives the
# default choices, and consumers choose among all by ISOTOPE_BACKEND.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/isotope)

install(TARGETS isotope EXPORT isotopeTargets)
install(DIRECTORY include/isotope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers FILES_MATCHING PATTERN "*.hpp" PATTERN kernels EXCLUDE)
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/kernels)
  install(DIRECTORY kernels/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/isotope/kernels COMPONENT headers FILES_MATCHING PATTERN "*.hpp" PATTERN "*.glsl" PATTERN "*.h"
          PATTERN "*.cuh")
endif()
install(EXPORT isotopeTargets NAMESPACE isotope:: DESTINATION ${package_dir} COMPONENT headers)
configure_package_config_file(cmake/isotopeConfig.cmake.in ${PROJECT_BINARY_DIR}/isotopeConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/isotopeConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/isotopeConfig.cmake ${PROJECT_BINARY_DIR}/isotopeConfigVersion.cmake cmake/io.cmake cmake/dependencies.cmake
              cmake/dependencies.txt
        DESTINATION ${package_dir} COMPONENT headers)

# What isotopeConfig.cmake reads of each backend whose headers are there.
file(
  CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/backend/${isotope_backend}.cmake @ONLY
  CONTENT "set(isotope_${isotope_backend}_PRECISIONS ${isotope_${isotope_backend}_PRECISIONS})
set(isotope_${isotope_backend}_DEFAULT_PRECISION ${isotope_${isotope_backend}_DEFAULT_PRECISION})
")
install(DIRECTORY ${PROJECT_BINARY_DIR}/backend DESTINATION ${package_dir} COMPONENT headers FILES_MATCHING PATTERN "${isotope_backend}.cmake")

# isotope.pc: the flags of the library for the compiler of this build, without choices: -DISOTOPE_BACKEND=... on the command line chooses another backend. Flags
# that change only the speed are a variable of their own, since Debian refuses such flags for all users of a package.
set(isotope_pc_flags ${isotope_flags_${CMAKE_CXX_COMPILER_ID}})
set(isotope_pc_speed ${isotope_pc_flags})
list(FILTER isotope_pc_flags EXCLUDE REGEX math)
list(FILTER isotope_pc_speed INCLUDE REGEX math)
list(JOIN isotope_pc_flags " " isotope_pc_flags)
list(JOIN isotope_pc_speed " " isotope_pc_speed)
file(RELATIVE_PATH isotope_pc_prefix /${CMAKE_INSTALL_DATADIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" isotope_pc_prefix "${isotope_pc_prefix}")
configure_file(cmake/isotope.pc.in ${PROJECT_BINARY_DIR}/isotope.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/isotope.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT headers)
