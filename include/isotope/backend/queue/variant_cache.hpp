#pragma once
/// What a device knows of the variants of kernels: a file of the user, a table of the library for devices that were measured, and what this process chose.
#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/device.hpp"
#include "choice_file.hpp"
#include "known_choices.hpp"

namespace isotope {

/// Choices that the library brings for a model of device: lines of signature, tab, variant.
struct shipped_choices {
  std::string_view device, lines;
};

/// What the timing of variants took, in seconds: to make memory and the numbers in it, to wait for the compiler, to compare results, and to time. `compiling` has no part in the limit of
/// a plan's timing.
struct tuning_times {
  int choices = 0, variants = 0;
  double preparing = 0, compiling = 0, comparing = 0, timing = 0;
};

/// Choices by the signature of a step, or of a product of a library. A choice is measured, or estimated: then it stands in the file so that other estimates of
/// a later build do not change bits, and is measured where that is asked for. Sessions of several threads may share one.
class variant_cache : public known_choices {
 public:
  /// Names what choices depend on besides the device and its driver. It is raised when a kernel has changed so that old choices are not worth keeping.
  static constexpr std::string_view version = "variants 1";

  /// @param path     the file; empty: choices are kept in memory
  /// @param key      the device and its driver
  /// @param shipped  tables of the library; `device` chooses one
  variant_cache(tuning level, const std::string& path, const std::string& key, std::string_view device = {},
                std::span<const shipped_choices> shipped = {})
      : level_(level), path_(level == tuning::off ? std::string() : path) {
    if (level != tuning::off) file_ = choice_file(path_, key + ", " + std::string(version));
    if (!file_.ignored().empty()) said_.push_back(file_.ignored());
    for (const auto& s : shipped)
      if (level == tuning::cached && s.device == device) take(s.lines);
  }
  variant_cache(const variant_cache&) = delete;
  variant_cache& operator=(const variant_cache&) = delete;

  tuning level() const { return level_; }
  const std::string& path() const { return path_; }
  bool kept() const { return file_.kept(); }

  std::string find(const std::string& signature) const override {
    const std::lock_guard lock(mutex_);
    if (level_ == tuning::off) return {};
    if (const std::string* value = file_.find(signature)) {
      if (value->starts_with(measured_word)) return value->substr(measured_word.size());
      if (level_ == tuning::cached && value->starts_with(estimated_word)) return value->substr(estimated_word.size());
    }
    const auto at = shipped_.find(signature);
    return at == shipped_.end() ? std::string() : at->second;
  }
  void put_measured(const std::string& signature, const std::string& variant) { put(signature, std::string(measured_word) + variant); }
  void put_estimated(const std::string& signature, const std::string& variant) { put(signature, std::string(estimated_word) + variant); }

  /// Writes the choices to their file.
  void save() {
    const std::lock_guard lock(mutex_);
    unsaved_ = !file_.save();
  }
  /// Adds a line to the messages.
  void say(std::string line) {
    const std::lock_guard lock(mutex_);
    said_.push_back(std::move(line));
  }
  /// Adds to what was spent.
  void spend(const tuning_times& t) {
    const std::lock_guard lock(mutex_);
    spent_.choices += t.choices, spent_.variants += t.variants;
    spent_.preparing += t.preparing, spent_.compiling += t.compiling, spent_.comparing += t.comparing, spent_.timing += t.timing;
  }
  /// What all plans of this process spent.
  tuning_times spent() const {
    const std::lock_guard lock(mutex_);
    return spent_;
  }
  /// Why the file was ignored, which variants are wrong on this device, and that the file cannot be written, where that is so.
  std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex_);
    auto all = said_;
    if (unsaved_) all.push_back(path_ + " cannot be written: the next run chooses variants of kernels again, and may choose others");
    return all;
  }

 private:
  static constexpr std::string_view measured_word = "measured ", estimated_word = "estimated ";
  tuning level_;
  std::string path_;
  choice_file file_;
  std::map<std::string, std::string> shipped_;
  std::vector<std::string> said_;
  bool unsaved_ = false;
  tuning_times spent_;
  mutable std::mutex mutex_;

  void put(const std::string& signature, std::string value) {
    const std::lock_guard lock(mutex_);
    if (level_ != tuning::off) file_.choose(signature, std::move(value));
  }
  void take(std::string_view lines) {
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      lines.remove_prefix(std::min(line.size() + 1, lines.size()));
      if (const auto tab = line.find('\t'); tab != line.npos) shipped_.emplace(line.substr(0, tab), line.substr(tab + 1));
    }
  }
};

}  // namespace isotope
