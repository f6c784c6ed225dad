# Installs headers and the CMake package. kernels/ is beside include/ in the source tree, and inside it when installed.
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
