#pragma once
/// Known failures: FOLDER/<op>/v<version>/<sha256>.json, each one case. Files are added as a whole and never changed.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "../io/file.hpp"
#include "case_record.hpp"
#include "sha256.hpp"

namespace isotope::conform {

inline std::string regression_folder(const std::string& root, const spec& s) {
  return root + "/" + std::string(s.name) + "/v" + std::to_string(s.version);
}

/// @error write_failed
inline result<void> make_folders(const std::string& path) {
  for (std::size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    if (::mkdir(path.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST)
      return fail(errc::write_failed, "the folder cannot be made", path.substr(0, at), "check the permissions");
  }
  return {};
}
/// Adds a case; an existing one is left unchanged. Returns the file's name. @error write_failed
inline result<std::string> add_regression(const std::string& root, const test_case& c) {
  const std::string record = record_of(c), folder = regression_folder(root, *c.of);
  std::string path = folder + "/" + sha256::of(record) + ".json";
  if (auto r = make_folders(folder); !r) return r.error();
  struct stat there{};
  if (::stat(path.c_str(), &there) == 0) return path;
  if (auto r = io::write_file(path, record + "\n"); !r) return r.error();
  return path;
}
/// Returns all cases of the chosen ops, by op and name. @error those of files and records
inline result<std::vector<test_case>> read_regressions(const std::string& root, std::span<const spec* const> ops) {
  std::vector<test_case> all;
  for (const spec* s : ops) {
    std::vector<std::string> names;
    const std::string folder = regression_folder(root, *s);
    if (DIR* d = ::opendir(folder.c_str()); d != nullptr) {
      while (const dirent* e = ::readdir(d))
        if (const std::string name = e->d_name; name.size() == 69 && name.ends_with(".json")) names.push_back(name);
      ::closedir(d);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string path = folder + "/" + name;
      auto file = io::read_file(path);
      if (!file) return file.error();
      auto j = io::parse_json(file->text(), path);
      if (!j) return j.error();
      auto c = read_record(*j);
      if (!c) return fail(c.error().code, c.error().what, path, c.error().fix);
      all.push_back(*std::move(c));
    }
  }
  return all;
}

}  // namespace isotope::conform
