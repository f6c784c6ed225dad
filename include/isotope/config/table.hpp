#pragma once
/// Text for --print-config, in columns.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <isotope/config/load.hpp>

namespace isotope::config {

/// Pads columns to their widest cell, with two blanks between them and none at the end of a line.
inline std::string columns(std::span<const std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

/// Prints one line per field: key, value as JSON, and the layer that set it.
template <class C> std::string table(const loaded<C>& configuration) {
  std::vector<std::vector<std::string>> rows = {{"field", "value", "layer"}};
  for (const setting& s : configuration.settings) rows.push_back({s.key, s.value, s.origin});
  return columns(rows);
}

}  // namespace isotope::config
