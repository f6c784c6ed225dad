# Concatenates the files listed (one per line) in LIST into a C++ source OUT that defines `const char SYMBOL[]` (with a closing zero) and
# `const std::size_t SYMBOL_size` (without it):  cmake -DLIST=... -DOUT=... -DSYMBOL=... -P embed.cmake
# The bytes are a string literal with \x escapes, which gcc reads twenty times faster than an array of numbers, and which needs no assembler.
file(STRINGS ${LIST} files)
set(all "")
foreach(file IN LISTS files)
  file(READ ${file} bytes HEX)
  string(APPEND all "${bytes}")
endforeach()
string(LENGTH "${all}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................................................)" "\\1\"\n\"" all "${all}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" all "${all}")
file(WRITE ${OUT} "#include <cstddef>
extern const char ${SYMBOL}[];
extern const std::size_t ${SYMBOL}_size;
const char ${SYMBOL}[] =
\"${all}\";
const std::size_t ${SYMBOL}_size = ${size};
")
