#pragma once
/// A file that remembers which variant of a kernel was chosen for a step, so that the choice, which is made by timing, is made once: with the same file, the
/// same variants run and give the same bits. Any backend may keep such a file.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <unistd.h>

namespace isotope {

/// Choices by the signature of a step, for example "m=4096 n=768 k=768 bf16". The file is text: a line that names what the choices depend on (`key`: device,
/// driver, library), a line for each choice: signature, tab, variant, and a line with a hash of them. Signatures and variants contain no tabs and no line ends.
class choice_file {
 public:
  choice_file() = default;
  /// Reads the file; `path` empty: choices are only kept in memory. A file with another key or a broken line is ignored as a whole, and replaced by `save`.
  choice_file(std::string path, std::string key) : path_(std::move(path)), key_(std::move(key)) {
    std::error_code none;
    if (path_.empty()) return;
    if (const auto bytes = std::filesystem::file_size(path_, none); !none && bytes > most_bytes)
      ignore("it has " + std::to_string(bytes) + " bytes, more than " + std::to_string(most_bytes));
    else if (std::ifstream in(path_); in) take(in);
  }
  /// The same, of what a file at `path` would hold.
  choice_file(std::istream& in, std::string path, std::string key) : path_(std::move(path)), key_(std::move(key)) { take(in); }

  /// The variant that was chosen; null: none was.
  const std::string* find(const std::string& signature) const {
    const auto at = choices_.find(signature);
    return at == choices_.end() ? nullptr : &at->second;
  }
  void choose(const std::string& signature, std::string variant) {
    std::string& to = choices_[signature];
    if (to == variant) return;
    to = std::move(variant);
    own_.insert(signature);
    changed_ = true;
  }
  /// Whether choices are kept beyond this process.
  bool kept() const { return !path_.empty(); }
  /// Why the file was ignored when it was read; empty: it was not.
  const std::string& ignored() const { return ignored_; }

  /// Writes a temporary file and renames it, so that readers never see a partial file. Choices that another process has written since stay in the file, but for
  /// those that were chosen here. Returns false if the folder cannot be written, which is harmless.
  bool save() {
    if (path_.empty() || !changed_) return true;
    if (std::ifstream in(path_); in) {
      choice_file there;
      there.key_ = key_;
      if (there.read(in).empty())
        for (const auto& [signature, variant] : there.choices_)
          if (!own_.contains(signature)) choices_[signature] = variant;
    }
    std::error_code none;
    const std::filesystem::path path(path_);
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), none);
    static std::atomic<unsigned> saves = 0;  // devices of one process may save at once
    const std::string beside = path_ + "." + std::to_string(getpid()) + "." + std::to_string(++saves) + ".tmp";
    {
      std::ofstream out(beside, std::ios::trunc);
      const std::string all = text();
      out << all << "hash\t" << hash_of(all) << '\n';
      out.flush();
      if (!out) {
        out.close();
        std::filesystem::remove(beside, none);
        return false;
      }
    }
    std::filesystem::rename(beside, path, none);
    if (none) {
      std::filesystem::remove(beside, none);
      return false;
    }
    changed_ = false;
    return true;
  }

  /// What `save` writes, without the line of the hash.
  std::string text() const {
    std::string all = header() + "\n";
    for (const auto& [signature, variant] : choices_) all += signature + "\t" + variant + "\n";
    return all;
  }
  /// FNV-1a (Fowler, Noll & Vo 1991). It detects files that were cut or changed.
  static std::uint64_t hash_of(const std::string& text) {
    std::uint64_t h = 0xcbf29ce484222325u;
    for (const char c : text) h = (h ^ std::uint8_t(c)) * 0x100000001b3u;
    return h;
  }

 private:
  std::string path_, key_, ignored_;
  std::map<std::string, std::string> choices_;
  std::set<std::string> own_;  // signatures that were chosen here
  bool changed_ = false;
  static constexpr std::size_t most_bytes = 16 << 20;

  std::string header() const { return "isotope choices 1\t" + key_; }
  void take(std::istream& in) {
    if (const std::string why = read(in); !why.empty()) ignore(why);
  }
  void ignore(const std::string& why) {
    ignored_ = path_ + " is ignored and will be replaced: " + why;
    choices_.clear();
    changed_ = true;
  }
  /// Returns why the file cannot be used; empty: it can.
  std::string read(std::istream& in) {
    std::string line, hash;
    std::size_t bytes = 0;
    if (!std::getline(in, line) || line != header()) return "it was made for another device, driver or library";
    while (std::getline(in, line)) {
      bytes += line.size() + 1;
      if (bytes > most_bytes) return "it has more than " + std::to_string(most_bytes) + " bytes";
      const auto tab = line.find('\t');
      if (!hash.empty() || tab == line.npos || tab == 0 || tab + 1 == line.size()) return "a line is not 'signature, tab, variant'";
      if (line.starts_with("hash\t")) hash = line.substr(tab + 1);
      else choices_[line.substr(0, tab)] = line.substr(tab + 1);
    }
    return hash == std::to_string(hash_of(text())) ? std::string() : "it was cut or changed";
  }
};

}  // namespace isotope
