# The version of a source tree, in one form that both dpkg and rpm order. A tag v<X.Y.Z>, or v<X.Y.Z>-rc1 for a prerelease, names a version:
#
#   0.1.0~rc1                                          the commit of the tag v0.1.0-rc1
#   0.1.0                                              the commit of the tag v0.1.0, or a source tree without git
#   0.1.0~dev20261127093012+g0d72b8b5c0de              a commit before any tag of 0.1.0: before 0.1.0~rc1 and 0.1.0
#   0.1.0~rc1+dev20261127093012+g0d72b8b5c0de          a commit after the tag v0.1.0-rc1: before 0.1.0~rc2 and 0.1.0
#
# The number behind `dev` is the commit's time in UTC, so the same commit has the same version in every clone. `.dirty` follows if files differ from the commit.
include_guard(GLOBAL)

# isotope_git(<result> <source> <argument>...): the first line that git prints; empty if it fails.
function(isotope_git result source)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env TZ=UTC git -C ${source} ${ARGN}
    OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    set(text "")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# isotope_version(<version> <sha> <source> <X.Y.Z>): the version and the commit, which is `unknown` without git.
function(isotope_version version sha source release)
  set(${version} ${release} PARENT_SCOPE)
  set(${sha} unknown PARENT_SCOPE)
  isotope_git(inside ${source} rev-parse --is-inside-work-tree)
  isotope_git(prefix ${source} rev-parse --show-prefix)
  isotope_git(commit ${source} describe --always --dirty --abbrev=12 --exclude=*)
  if(NOT inside OR NOT "${prefix}" STREQUAL "" OR NOT commit)  # a folder within another project's repository has that one's commits
    return()
  endif()
  set(${sha} ${commit} PARENT_SCOPE)
  isotope_git(time ${source} log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)
  isotope_git(tag ${source} describe --tags --abbrev=0 --match v${release} --match v${release}-*)
  isotope_git(exact ${source} describe --tags --exact-match --match v${release} --match v${release}-*)
  set(text "${release}~")
  if(tag)
    string(REGEX REPLACE "^v" "" text "${tag}")
    string(REGEX REPLACE "^([^-]*)-" "\\1~" text "${text}")
    string(REPLACE "-" "." text "${text}")
    if(exact AND NOT commit MATCHES "-dirty$")
      set(${version} "${text}" PARENT_SCOPE)
      return()
    endif()
    string(APPEND text "+")
  endif()
  string(REPLACE "-dirty" ".dirty" commit "${commit}")
  set(${version} "${text}dev${time}+g${commit}" PARENT_SCOPE)
endfunction()
