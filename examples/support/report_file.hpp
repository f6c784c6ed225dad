#pragma once
/// Where reports go: a file, replaced as a whole, or a stream.
#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace support {

/// A path whose folder is missing would lose its file at the end of a long run.
/// @error invalid_argument
inline isotope::result<void> check_folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (path.empty() || folder.empty() || std::filesystem::is_directory(folder, ignored)) return {};
  return isotope::fail(isotope::errc::invalid_argument, "its folder does not exist", path, "make the folder first");
}

/// Writes `text` to stderr for `-`, else to the file. What is no ordinary file, such as a pipe, is written to and not replaced.
/// @error write_failed with the path and the system's reason
inline isotope::result<void> write_report(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  const bool stream = path == "-" || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status));
  if (!stream) return isotope::io::write_file(path, text);
  std::FILE* f = path == "-" ? stderr : std::fopen(path.c_str(), "we");
  bool good = f != nullptr && std::fwrite(text.data(), 1, text.size(), f) == text.size();
  good = f != nullptr && (f == stderr ? std::fflush(f) : std::fclose(f)) == 0 && good;
  if (good) return {};
  return isotope::fail(isotope::errc::write_failed, "cannot write: " + isotope::io::detail::reason(errno), path,
                       "name a file, or - for stderr");
}

/// A line on stderr that is no failure.
inline void remark(std::string_view program, std::string_view text) {
  const std::string line = std::string(program) + ": " + std::string(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace support
