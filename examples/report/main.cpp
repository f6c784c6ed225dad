/// isotope-report: one HTML page of the JSON lines of training runs, side by side. See --help.
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/report_page.hpp"
#include "../support/version_without_device.hpp"
#include "command.hpp"
#include "read_log.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace report_program {

int run(const support::command_words& c) {
  using isotope::errc, isotope::fail;
  if (c.files.empty())
    return support::report(
        program, fail(errc::missing_value, "needs the JSON lines of a run", "command line", "isotope-report run.jsonl --out page.html"));
  if (!c.has("--out")) return support::report(program, fail(errc::missing_value, "is missing", "--out", "name the page to write"));
  int code = support::success;
  std::vector<read_run> runs;
  std::int64_t left_out = 0;
  for (const std::string& path : c.files) {
    auto read = read_log(path);
    if (support::failed(program, read, code)) return code;
    left_out += read->left_out;
    runs.push_back(*std::move(read));
  }
  std::vector<support::page_run> shown;
  for (std::size_t i = 0; i < runs.size(); ++i) shown.push_back({c.files[i], runs[i].lines, runs[i].left_out});
  if (auto r = support::write_page(c.get("--out"), shown); support::failed(program, r, code)) return code;
  support::print("page " + c.get("--out") +
                 (left_out == 0 ? "" : ", " + std::to_string(left_out) + (left_out == 1 ? " line" : " lines") + " left out") + "\n");
  return support::success;
}

int guarded_main(int argc, char** argv) {
  const auto c = read_command({argv + 1, argv + argc});
  int code = support::success;
  if (support::failed(program, c, code)) return code;
  if (c->has("--help")) return support::print(help_text()), support::success;
  if (c->has("--version")) return support::print(support::version_without_device(program)), support::success;
  return run(*c);
}

}  // namespace report_program

int main(int argc, char** argv) {
  return support::guarded(report_program::program, [&] { return report_program::guarded_main(argc, argv); });
}
