#pragma once
/// isotope-info inspect FILE: lists what a safetensors file holds, including checkpoints and recorded runs.
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "settings.hpp"

#include <isotope/config/table.hpp>
#include <isotope/io/safetensors_file.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace info_program {

/// Returns a tensor's size: `12 x 64`, or `scalar`.
inline std::string shape_text(const std::vector<std::int64_t>& dims) {
  std::string text;
  for (const std::int64_t n : dims) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text.empty() ? "scalar" : text;
}

/// Prints a row for every tensor in the order of the file, then its notes, then the sums. Names in a file are arbitrary, so control characters become
/// blanks and long notes are cut.
inline int inspect(const std::vector<std::string>& files) {
  using isotope::errc, support::one_line, support::print;
  if (files.size() != 1)
    return support::report(program, isotope::fail(errc::invalid_argument, "inspect takes one file, not " + std::to_string(files.size()),
                                                  "command line", "isotope-info inspect FILE"));
  const auto file = isotope::io::open_safetensors(files[0]);
  int code = support::success;
  if (support::failed(program, file, code)) return code;
  std::vector<std::vector<std::string>> rows = {{"tensor", "type", "shape", "bytes"}};
  std::int64_t elems = 0, bytes = 0;
  for (const isotope::io::tensor_entry& t : file->tensors) {
    rows.push_back({one_line(t.name), std::string(t.type.name), shape_text(t.dims), std::to_string(t.bytes)});
    elems += t.elems();
    bytes += std::int64_t(t.bytes);
  }
  print(isotope::config::columns(rows));
  if (!file->metadata.empty()) {
    constexpr std::size_t longest = 200;
    rows = {{"note", "text"}};
    for (const auto& [key, value] : file->metadata)
      rows.push_back(
          {one_line(key),
           one_line(value.size() <= longest ? value : value.substr(0, longest) + "... (" + std::to_string(value.size()) + " bytes)")});
    print("\n" + isotope::config::columns(rows));
  }
  print("\n" + std::to_string(file->tensors.size()) + " tensors, " + std::to_string(elems) + " elements, " + std::to_string(bytes) +
        " bytes\n");
  return support::success;
}

}  // namespace info_program
