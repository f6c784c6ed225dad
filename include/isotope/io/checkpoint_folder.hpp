#pragma once
/// A folder of checkpoints: `step-00000500.safetensors` by step and `best.safetensors`. Readers use this class; writers use checkpoint_writer, of
/// which a folder has one at a time.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/checkpoint.hpp>

namespace isotope::io {

class checkpoint_folder {
 public:
  struct entry {
    std::int64_t step = 0;
    std::string path;
  };
  /// The newest readable checkpoint, and why each newer one is not readable.
  struct found {
    std::string path;
    checkpoint contents;
    std::vector<failure> skipped;
  };

  /// The checkpoints of a folder for reading: nothing is made, written or removed. A missing folder has none.
  explicit checkpoint_folder(std::filesystem::path path) : path_(std::move(path)) {}

  std::string path_of(std::int64_t step) const {
    const std::string digits = std::to_string(step);
    return path_ / ("step-" + std::string(8 - std::min<std::size_t>(8, digits.size()), '0') + digits + std::string(extension));
  }
  std::string best_path() const { return path_ / best_name; }

  /// The step files, oldest first.
  std::vector<entry> list() const {
    std::vector<entry> out;
    for (const std::string& file : names())
      if (const std::int64_t step = step_of(file); step >= 0) out.push_back({step, path_ / file});
    std::sort(out.begin(), out.end(), [](const entry& a, const entry& b) { return a.step < b.step; });
    return out;
  }

  /// Returns the newest valid step file. A writer may remove old files between listing and reading, even all that were listed if it saves quickly:
  /// then the folder is listed again.
  ///
  /// @error not_found: there is none; the text says how many were damaged, and the first reason
  result<found> latest() const {
    std::vector<failure> skipped;
    bool removed = true;
    for (int turn = 0; removed && turn < 100; ++turn) {
      removed = false;
      skipped.clear();
      const auto files = list();
      for (auto file = files.rbegin(); file != files.rend(); ++file) {
        auto loaded = load_checkpoint(file->path);
        if (loaded) return found{file->path, *std::move(loaded), std::move(skipped)};
        removed = removed || loaded.error().code == errc::not_found;
        skipped.push_back(std::move(loaded).error());
      }
    }
    if (skipped.empty()) return fail(errc::not_found, "no checkpoint in the folder", path_.string(), "train without resuming first");
    return fail(errc::not_found,
                "none of the " + std::to_string(skipped.size()) + " checkpoints can be read; the newest: " + skipped[0].what,
                path_.string(), "resume from another folder, or train from the start");
  }

 protected:
  static constexpr std::string_view prefix = "step-", extension = ".safetensors", best_name = "best.safetensors";

  /// Returns the step in a file's name, or -1 for other files.
  static std::int64_t step_of(std::string_view file) {
    if (!file.starts_with(prefix) || !file.ends_with(extension)) return -1;
    const std::string_view digits = file.substr(prefix.size(), file.size() - prefix.size() - extension.size());
    std::int64_t step = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
    return digits.size() >= 8 && error == std::errc() && end == digits.data() + digits.size() ? step : -1;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    std::error_code error;
    for (std::filesystem::directory_iterator it(path_, error), end; !error && it != end; it.increment(error))
      out.push_back(it->path().filename().string());
    return out;
  }

  std::filesystem::path path_;
};

}  // namespace isotope::io
