#pragma once
/// Saves the progress of a run in a file that is replaced as a whole: a run killed at any moment continues and ends with the same certificate.
#include <cstdint>
#include <string>

#include "../io/file.hpp"
#include "counts.hpp"
#include "sha256.hpp"

namespace isotope::conform {

inline constexpr std::string_view checkpoint_magic = "isotope-conform-checkpoint";
inline constexpr std::int64_t checkpoint_version = 2;

struct checkpoint {
  std::string run;         // a digest of everything that decides which cases run and how
  std::uint64_t next = 0;  // the first case that is not yet counted
  counts counted;
};

inline std::string text_of(const checkpoint& c) {
  const std::string body = json_object()
                               .text("magic", checkpoint_magic)
                               .whole("version", checkpoint_version)
                               .text("run", c.run)
                               .text("next", hex_text(c.next).view())
                               .set("tally", json_of(c.counted))
                               .str();
  return sha256::of(body) + "\n" + body + "\n";
}
/// @error write_failed
inline result<void> save(const checkpoint& c, const std::string& path) { return io::write_file(path, text_of(c)); }

/// @error not_found, corrupt, version_mismatch, model_mismatch (another run), bad_format
inline result<checkpoint> load_checkpoint(const std::string& path, const std::string& run) {
  auto file = io::read_file(path);
  if (!file) return file.error();
  const std::string_view text = file->text();
  const auto line = text.find('\n');
  if (line != 64 || text.size() < 67 || text.back() != '\n' || sha256::of(text.substr(65, text.size() - 66)) != text.substr(0, 64))
    return fail(errc::corrupt, "its contents do not have the hash that it states", path, "delete it and run again");
  auto j = io::parse_json(text.substr(65, text.size() - 66), path);
  if (!j) return j.error();
  std::int64_t version = 0;
  const io::json *magic = j->find("magic"), *whose = j->find("run");
  if (magic == nullptr || magic->text != checkpoint_magic || !read_whole(j->find("version"), version))
    return fail(errc::bad_format, "not a checkpoint of isotope-conform", path, "name another file");
  if (version != checkpoint_version)
    return fail(errc::version_mismatch,
                "version " + std::to_string(version) + ", this program writes " + std::to_string(checkpoint_version), path,
                "delete it and run again");
  if (whose == nullptr || whose->text != run)
    return fail(errc::model_mismatch, "the checkpoint of a run with other options, ops or devices", path,
                "the same options, or another file");
  checkpoint c{run, 0, {}};
  if (!record_detail::read_hex(j->find("next"), c.next) || !read_counts(j->find("tally"), c.counted))
    return fail(errc::bad_format, "a checkpoint without counts", path, "delete it and run again");
  return c;
}

}  // namespace isotope::conform
