// Prints include/isotope/io/unicode_tables.hpp or unicode_decompositions.hpp from the data of utf8proc. Usage: unicode_tables classes|decompositions.
// Exits with 77 if utf8proc has another version of Unicode than the committed tables.
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view version = "15.0.0";
constexpr int last_code = 0x10ffff;

std::string hex(long long n) {
  char text[24];
  std::snprintf(text, sizeof text, n < 0 ? "-0x%llx" : "0x%llx", n < 0 ? -n : n);
  return text;
}

/// Prints rows as the elements of an array, several on a line.
void print_array(std::string_view declaration, const std::vector<std::string>& rows) {
  std::cout << declaration << " = {";
  std::size_t column = 140;
  for (const std::string& row : rows) {
    const bool next = column + row.size() + 2 > 140;
    std::cout << (next ? "\n  " : " ") << row << ",";
    column = (next ? 2 : column + 1) + row.size() + 1;
  }
  std::cout << "\n};\n";
}

bool surrogate(int c) { return c >= 0xd800 && c < 0xe000; }

/// The bits of unicode::code_class that are categories of Unicode.
unsigned class_of(int c) {
  const std::string_view category = utf8proc_category_string(c);
  const auto white = [&] { return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || category[0] == 'Z'; };
  unsigned bits = 0;
  if (category[0] == 'L') bits |= 1;
  if (category[0] == 'N') bits |= 2;
  if (white()) bits |= 4;
  if (category[0] == 'P') bits |= 8;
  if (category == "Cc" || category == "Cf" || category == "Co") bits |= 16;
  if (category == "Mn") bits |= 32;
  return bits;
}

void print_classes() {
  std::vector<std::string> classes, orders, lower;
  unsigned before = 0;
  for (int c = 0; c <= last_code; ++c) {
    if (const unsigned bits = class_of(c); bits != before) classes.push_back(hex((static_cast<long long>(c) << 8) | bits)), before = bits;
  }
  for (int c = 0, order = 0; c <= last_code; ++c)
    if (const int o = utf8proc_get_property(c)->combining_class; o != order)
      orders.push_back(hex((static_cast<long long>(c) << 8) | o)), order = o;
  struct run {
    int first, last, step, delta;
  };
  std::vector<run> runs;
  for (int c = 0x80; c <= last_code; ++c) {
    const int delta = utf8proc_tolower(c) - c;
    if (delta == 0) continue;
    run* r = runs.empty() ? nullptr : &runs.back();
    const int gap = r == nullptr ? 0 : c - r->last;
    if (r != nullptr && r->delta == delta && gap <= 2 && (r->first == r->last || gap == r->step)) r->step = gap, r->last = c;
    else runs.push_back({c, c, 1, delta});
  }
  for (const run& r : runs) lower.push_back("{" + hex(r.first) + ", " + hex(r.last) + ", " + hex(r.step) + ", " + hex(r.delta) + "}");
  std::cout << "#pragma once\n"
               "/// Categories, canonical combining classes and lower case of Unicode "
            << version
            << ", from utf8proc. Written by tests/extend/unicode_tables.cpp:\n"
               "/// unicode_tables classes > include/isotope/io/unicode_tables.hpp.\n"
               "#include <cstdint>\n\n"
               "namespace isotope::io::unicode::table {\n\n"
               "// clang-format off\n"
               "/// Code points from (element >> 8) to the next element's have the bits (element & 255) of code_class.\n";
  print_array("inline constexpr std::uint32_t classes[]", classes);
  std::cout << "\n/// Code points from (element >> 8) to the next element's have the combining class (element & 255).\n";
  print_array("inline constexpr std::uint32_t combining_classes[]", orders);
  std::cout << "\n/// Every step-th code point from first to last has the lower case code + delta.\n"
               "struct lower_run {\n  std::uint32_t first, last, step;\n  std::int32_t delta;\n};\n";
  print_array("inline constexpr lower_run lower[]", lower);
  std::cout << "// clang-format on\n\n}  // namespace isotope::io::unicode::table\n";
}

void print_decompositions() {
  std::map<int, std::vector<int>> full;
  std::map<std::vector<int>, int> whole;  // of what a code point consists of, for those that stand first in a decomposition
  for (int c = 0; c <= last_code; ++c) {
    if (surrogate(c) || (c >= 0xac00 && c < 0xd7a4)) continue;
    utf8proc_int32_t parts[32];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
    if (count == 1 && parts[0] == c) continue;
    full[c].assign(parts, parts + count);
    if (count > 1) whole.emplace(full[c], c);
  }
  std::vector<std::string> singles, pairs;
  for (const auto& [c, parts] : full) {
    const std::vector<int> head(parts.begin(), parts.end() - (parts.size() > 1 ? 1 : 0));
    const int first = head.size() == 1 ? head[0] : whole.at(head), second = parts.size() > 1 ? parts.back() : 0;
    std::vector<utf8proc_int32_t> composed(parts.begin(), parts.end());
    const auto count = utf8proc_normalize_utf32(composed.data(), static_cast<utf8proc_ssize_t>(composed.size()),
                                                static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    const bool composes = count == 1 && composed[0] == c;
    if (second == 0) singles.push_back("{" + hex(c) + "," + hex(first) + "}");
    else pairs.push_back("{" + hex(c) + (composes ? "" : "|apart") + "," + hex(first) + "," + hex(second) + "}");
  }
  std::cout << "#pragma once\n"
               "/// Canonical decompositions of Unicode "
            << version
            << ", from utf8proc, without Hangul. Written by tests/extend/unicode_tables.cpp:\n"
               "/// unicode_tables decompositions > include/isotope/io/unicode_decompositions.hpp.\n"
               "#include <cstdint>\n\n"
               "namespace isotope::io::unicode::table {\n\n"
               "/// A flag of pair::code: the two parts are not composed again.\n"
               "inline constexpr std::uint32_t apart = 0x80000000;\n\n"
               "/// A code point and its two parts, of which the first may decompose further.\n"
               "struct pair {\n  std::uint32_t code, first, second;\n};\n\n"
               "/// A code point and the only one that it consists of.\n"
               "struct single {\n  std::uint32_t code, whole;\n};\n\n"
               "// clang-format off\n";
  print_array("inline constexpr pair pairs[]", pairs);
  print_array("\ninline constexpr single singles[]", singles);
  std::cout << "// clang-format on\n\n}  // namespace isotope::io::unicode::table\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what != "classes" && what != "decompositions") return std::cerr << "unicode_tables classes|decompositions\n", 2;
  if (version != utf8proc_unicode_version())
    return std::cerr << "utf8proc has Unicode " << utf8proc_unicode_version() << ", the tables have " << version << "\n", 77;
  what == "classes" ? print_classes() : print_decompositions();
}
