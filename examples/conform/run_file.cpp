/// isotope-conform run-file: runs cases made elsewhere.
#include "context.hpp"

#include "../support/exit_code.hpp"
#include "../support/output.hpp"

#include <isotope/conform/manifest_runner.hpp>

#include <set>

namespace conform_program {
namespace {

struct counts {
  std::int64_t passed = 0, failed = 0, unsupported = 0;
  void add(conform::verdict v) { (v == conform::verdict::passed ? passed : v == conform::verdict::failed ? failed : unsupported)++; }
};

/// Reads the manifest line by line and runs it in pieces, so that its tensors need not fit into memory together.
iso::result<std::string> results_of(const command& c, const target_choice& target, counts& n) {
  const std::string path = c.get("--manifest");
  auto manifest = iso::io::read_file(path);
  if (!manifest) return manifest.error();
  auto device = open_target(target);
  if (!device) return device.error();
  conform::manifest_reader reader(c.get("--tensors"), program_format(target));
  conform::manifest_runner runner(**device);
  std::string text;
  std::vector<conform::manifest_case> piece;
  const auto flush = [&]() -> iso::result<void> {
    auto all = runner.run(std::move(piece));
    piece.clear();
    if (!all) return all.error();
    for (const auto& r : *all) n.add(r.is.is), text += text_of(r);
    return {};
  };
  std::set<std::string> ids;
  std::string_view rest = manifest->text();
  for (int line = 1; !rest.empty(); ++line) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (one.find_first_not_of(" \t\r") == one.npos) continue;
    const std::string where = path + ":" + std::to_string(line);
    auto m = reader.read(one, where);
    if (!m) return m.error();
    if (!ids.insert(m->id).second)
      return iso::fail(iso::errc::bad_format, "the id '" + m->id + "' stands twice", where, "give every case its own");
    piece.push_back(*std::move(m));
    if (piece.size() == 32)
      if (auto r = flush(); !r) return r.error();
  }
  if (auto r = flush(); !r) return r.error();
  return text;
}

}  // namespace

int run_file(const command& c, const built_for& built) {
  int code = support::success;
  auto target = choose_target(c, built);
  if (support::failed(program, target, code)) return code;
  for (const char* flag : {"--manifest", "--tensors", "--out"})
    if (!c.has(flag)) return support::report(program, iso::fail(iso::errc::missing_value, "run-file needs it", flag, "--help explains"));
  counts n;
  auto text = results_of(c, *target, n);
  if (support::failed(program, text, code)) return code;
  if (auto r = iso::io::write_file(c.get("--out"), *text); support::failed(program, r, code)) return code;
  support::print(std::to_string(n.passed + n.failed + n.unsupported) + " cases, " + std::to_string(n.passed) + " passed, " +
                 std::to_string(n.failed) + " failed, " + std::to_string(n.unsupported) + " unsupported\n");
  return n.failed == 0 ? support::success : support::runtime_failure;
}

}  // namespace conform_program
