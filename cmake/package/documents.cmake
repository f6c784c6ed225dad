# cpack runs this when the files of a package are in a folder: adds the licence, a changelog and the manual pages of programs.
cmake_policy(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/manual_page.cmake)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env TZ=UTC LC_ALL=C git -C ${CPACK_ISOTOPE_SOURCE} log -1 "--format=%cd" "--date=format-local:%a, %d %b %Y %H:%M:%S +0000"
  OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT time)
  string(TIMESTAMP time "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})
  if(NOT IS_DIRECTORY ${usr})
    message(FATAL_ERROR " the component '${component}' has no files in ${usr}; built files alone are packaged. fix: build the programs.")
  endif()
  set(documents ${usr}/share/doc/${package})
  file(MAKE_DIRECTORY ${documents})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/copyright ${documents}/copyright COPYONLY)
  file(WRITE ${documents}/changelog "isotope (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Made of commit ${CPACK_ISOTOPE_SHA}.

 -- ${CPACK_PACKAGE_CONTACT}  ${time}
")
  execute_process(COMMAND gzip -9nf ${documents}/changelog COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB programs ${usr}/bin/*)
  foreach(program IN LISTS programs)
    isotope_manual_page(${program} ${CPACK_ISOTOPE_SOURCE} ${usr}/share/man/man1 ${CPACK_PACKAGE_VERSION})
  endforeach()
endforeach()
