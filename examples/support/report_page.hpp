#pragma once
/// Writes the report page: one HTML file with the JSON lines of runs inside it and a script that draws them. It loads nothing.
#include <isotope/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace support {

/// A run as the page shows it.
struct page_run {
  std::string name;
  std::string_view lines;     // JSON objects, each on a line
  std::int64_t left_out = 0;  // lines that are not among them
};

/// The most bytes of lines that a page holds: browsers limit the length of a text.
inline constexpr std::size_t page_limit = std::size_t(256) << 20;

/// Writes the page to a file, which is replaced as a whole.
/// @error invalid_argument: more than page_limit bytes; as io::write_file
isotope::result<void> write_page(const std::string& path, std::span<const page_run> runs);

}  // namespace support
