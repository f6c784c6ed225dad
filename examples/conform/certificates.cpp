/// isotope-conform merge and verify.
#include "context.hpp"

#include "../support/exit_code.hpp"
#include "../support/output.hpp"

namespace conform_program {

int merge(const command& c) {
  int code = support::success;
  std::vector<conform::certificate> parts;
  for (const std::string& file : c.files) {
    auto one = conform::read_certificate(file);
    if (support::failed(program, one, code)) return code;
    parts.push_back(*std::move(one));
  }
  auto all = conform::merge(parts);
  if (support::failed(program, all, code)) return code;
  if (const std::string out = c.get("--out"); !out.empty()) {
    if (auto r = iso::io::write_file(out, text_of(*all)); support::failed(program, r, code)) return code;
  }
  support::print(summary_line(all->counted) + "\n");
  return all->counted.failed() == 0 ? support::success : support::runtime_failure;
}

int verify(const command& c) {
  int code = support::success;
  bool failures = false;
  for (const std::string& file : c.files) {
    auto one = conform::read_certificate(file);
    if (support::failed(program, one, code)) return code;
    const bool current = one->registry == conform::hex_text(conform::registry_hash()).view();
    support::print(file + ": " + one->backend + " " + one->precision + " " + one->kernels + " on " + one->device + ", coverage " +
                   iso::io::number_text(float(coverage_of(one->counted, one->kernel_ops).least())) +
                   (current ? "" : ", of another registry of ops") + "; " + summary_line(one->counted) + "\n");
    failures = failures || one->counted.failed() > 0 || !current;
  }
  return failures ? support::runtime_failure : support::success;
}

}  // namespace conform_program
