/// isotope-conform golden: checks that the references still give what they gave when their specifications got their versions.
#include "command.hpp"
#include "commands.hpp"

#include "../support/exit_code.hpp"
#include "../support/output.hpp"

#include <isotope/conform/golden.hpp>
#include <isotope/io/file.hpp>

#include <filesystem>

namespace conform_program {
namespace {

namespace conform = iso::conform;
namespace fs = std::filesystem;

std::string path_of(const std::string& folder, const conform::spec& s) { return folder + "/" + std::string(s.name) + ".json"; }

iso::result<void> check(const std::string& folder, const conform::spec& s) {
  const std::string path = path_of(folder, s);
  auto text = iso::io::read_file(path);
  if (!text) return text.error();
  return check_golden(s, text->text(), path);
}
/// Writes files that are missing or have another version. A file of the same version is kept, because its numbers are frozen.
iso::result<bool> write(const std::string& folder, const conform::spec& s) {
  if (fs::exists(path_of(folder, s))) {
    auto r = check(folder, s);
    if (r) return false;
    if (r.error().code != iso::errc::version_mismatch) return r.error();
  }
  if (auto r = iso::io::write_file(path_of(folder, s), golden_text(s, conform::make_golden(s))); !r) return r.error();
  return true;
}
/// Lists files of ops that no longer exist.
iso::result<void> check_strangers(const std::string& folder) {
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (conform::find_spec(at->path().stem().string()) == nullptr)
      return iso::fail(iso::errc::not_found, "no op has this name", at->path().string(), "remove the file");
  if (failed) return iso::fail(iso::errc::unreadable, "cannot be listed: " + failed.message(), folder, "name a folder of samples");
  return {};
}

}  // namespace

int golden(const command& c) {
  if (c.files.size() > 1)
    return support::report(program, iso::fail(iso::errc::invalid_argument, "'" + c.files[1] + "' is one folder too many", "golden",
                                              "name one folder of samples"));
  const std::string& folder = c.files[0];
  auto ops = conform::choose_ops(c.get("--ops", "all"));
  int code = support::success;
  if (support::failed(program, ops, code)) return code;
  if (auto r = check_strangers(folder); support::failed(program, r, code)) return code;
  std::int64_t same = 0, written = 0, differ = 0;
  for (const conform::spec* s : *ops) {
    iso::result<bool> wrote = false;
    if (c.has("--write")) wrote = write(folder, *s);
    else if (auto r = check(folder, *s); !r) wrote = r.error();
    if (!wrote) support::report(program, wrote.error());
    (!wrote ? differ : *wrote ? written : same)++;
  }
  support::print(std::to_string(ops->size()) + " ops: " + std::to_string(same) + " as they were, " + std::to_string(written) +
                 " written, " + std::to_string(differ) + " differ\n");
  return differ == 0 ? support::success : support::runtime_failure;
}

}  // namespace conform_program
