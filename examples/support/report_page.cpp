#include "report_page.hpp"

#include <isotope/io/file.hpp>
#include <isotope/io/json_text.hpp>

#include <algorithm>
#include <string>
#include <string_view>

extern const char isotope_report_page_head[];
extern const std::size_t isotope_report_page_head_size;
extern const char isotope_report_page_foot[];
extern const std::size_t isotope_report_page_foot_size;

namespace support {

namespace {

/// In JSON, < stands in strings alone, where it may be written by its number; without it no text can end the script element, nor begin another.
void add_escaped(std::string& out, std::string_view json) {
  for (const char c : json) c == '<' ? out += "\\u003c" : out += c;
}

}  // namespace

isotope::result<void> write_page(const std::string& path, std::span<const page_run> runs) {
  std::size_t bytes = 0;
  for (const page_run& run : runs) bytes += run.lines.size();
  if (bytes > page_limit)
    return isotope::fail(
        isotope::errc::invalid_argument,
        "would hold " + std::to_string(bytes >> 20) + " MiB of lines, and browsers read at most " + std::to_string(page_limit >> 20), path,
        "give fewer runs, or every tenth line of each");
  std::string page(isotope_report_page_head, isotope_report_page_head_size);
  page.reserve(page.size() + bytes + bytes / 64 + isotope_report_page_foot_size);
  page += "{\"runs\":[";
  for (const page_run& run : runs) {
    page += std::string(page.back() == '[' ? "" : ",") + "\n{\"name\":";
    add_escaped(page, isotope::io::json_string(run.name));
    page += ",\"left_out\":" + std::to_string(run.left_out) + ",\"lines\":[";
    for (std::size_t at = 0; at < run.lines.size();) {
      const std::size_t end = std::min(run.lines.find('\n', at), run.lines.size());
      if (end > at) {
        page += page.back() == '[' ? "\n" : ",\n";
        add_escaped(page, run.lines.substr(at, end - at));
      }
      at = end + 1;
    }
    page += "]}";
  }
  page += "]}\n";
  page.append(isotope_report_page_foot, isotope_report_page_foot_size);
  return isotope::io::write_file(path, page);
}

}  // namespace support
