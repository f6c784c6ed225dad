/// isotope-conform replay: runs failures again from the files that they left.
#include "failures.hpp"

#include "../support/exit_code.hpp"
#include "../support/output.hpp"

namespace conform_program {
namespace {

/// Returns the target that a record names, for flags that name none.
command with_target_of(const iso::io::json& record, command c) {
  for (const auto& [key, flag] :
       {std::pair("backend", "--backend"), std::pair("precision", "--precision"), std::pair("kernels", "--kernels")})
    if (const iso::io::json* x = record.find(key); x != nullptr && !c.has(flag)) c.values.emplace(flag, x->text);
  return c;
}

}  // namespace

int replay(const command& given, const built_for& built) {
  int code = support::success;
  bool failing = false;
  for (const std::string& file : given.files) {
    auto text = iso::io::read_file(file);
    if (support::failed(program, text, code)) return code;
    auto j = iso::io::parse_json(text->text(), file);
    if (support::failed(program, j, code)) return code;
    const iso::io::json* record = j->find("case") != nullptr ? j->find("case") : &*j;
    auto c = conform::read_record(*record);
    if (!c) return support::report(program, iso::fail(c.error().code, c.error().what, file, c.error().fix));
    auto target = choose_target(with_target_of(*j, given), built);
    if (support::failed(program, target, code)) return code;
    auto device = open_target(*target);
    if (support::failed(program, device, code)) return code;
    conform::batch_runner runner(**device);
    auto o = runner.run({&*c, 1});
    if (support::failed(program, o, code)) return code;
    const conform::case_result& seen = (*o)[0];
    support::print(file + ": " + std::string(name_of(seen.is)) +
                   (seen.reason.empty() ? "" : ": " + support::one_line(seen.reason) + ". Fix: " + seen.fix) + "\n");
    failing = failing || seen.is != conform::verdict::passed;
  }
  return failing ? support::runtime_failure : support::success;
}

}  // namespace conform_program
