# Writes facts of this build that the compiler does not know to OUT, and changes the file only if one of them has changed:
#   cmake -DOUT=... -DSOURCE=... -DVERSION=... -DARCH=... -DCOMPILER=... -DBUILD_TYPE=... -DOPTIONS=... -P build_facts.cmake
execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE sha OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE rc)
if(NOT rc EQUAL 0)
  set(sha unknown)
endif()
file(
  CONFIGURE OUTPUT ${OUT}
  CONTENT [[#define ISOTOPE_FACT_GIT_SHA "@sha@"
#define ISOTOPE_FACT_VERSION "@VERSION@"
#define ISOTOPE_FACT_CPU_ARCH "@ARCH@"
#define ISOTOPE_FACT_COMPILER "@COMPILER@"
#define ISOTOPE_FACT_BUILD_TYPE "@BUILD_TYPE@"
#define ISOTOPE_FACT_OPTIONS "@OPTIONS@"
]]
  @ONLY NEWLINE_STYLE UNIX)
