# isotope_manual_page(<program> <source> <folder> <version>): writes <folder>/<name>.1.gz, with the first line of the program's main.cpp as its purpose and
# what `--help` prints.
function(isotope_manual_page program source folder version)
  get_filename_component(name ${program} NAME)
  string(REGEX REPLACE "^isotope-" "" short ${name})
  file(STRINGS ${source}/examples/${short}/main.cpp purpose LIMIT_COUNT 1)
  string(REGEX REPLACE "^/// *(${name}: )?" "" purpose "${purpose}")
  string(REGEX REPLACE "[.:] .*$|\\.$" "" purpose "${purpose}")
  execute_process(COMMAND ${program} --help RESULT_VARIABLE rc OUTPUT_VARIABLE help)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR " ${name} --help ends with ${rc}, so it has no manual page.")
  endif()
  foreach(text purpose help)
    string(REPLACE "\\" "\\e" ${text} "${${text}}")
    string(REPLACE "-" "\\-" ${text} "${${text}}")
    string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" ${text} "${${text}}")
  endforeach()
  string(REPLACE "-" "\\-" title ${name})
  file(MAKE_DIRECTORY ${folder})
  file(WRITE ${folder}/${name}.1 ".TH ${name} 1 \"\" \"isotope ${version}\"
.SH NAME
${title} \\- ${purpose}
.SH SYNOPSIS
.B ${title}
[options]
.SH DESCRIPTION
.nf
${help}
.fi
")
  execute_process(COMMAND gzip -9nf ${folder}/${name}.1 COMMAND_ERROR_IS_FATAL ANY)
endfunction()
