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
  const auto covered = covers_its_ops(*all);
  if (support::failed(program, covered, code)) return code;
  support::print(summary_line(all->counted) + "\n");
  return all->counted.failed() == 0 && *covered ? support::success : support::runtime_failure;
}

namespace {

/// Prints what a certificate says about kernels on one line: those that ran, and the ops that failed or could not run.
std::string summary_of(const conform::certificate& c) {
  std::set<std::string> failing, unsupported, native;
  for (const auto& [name, o] : c.counted.ops) {
    if (o.failed > 0) failing.insert(name);
    if (o.unsupported > 0) unsupported.insert(name);
  }
  for (const std::string& tier : c.counted.tiers)
    if (tier.starts_with("native:")) native.insert(tier.substr(7));
  const auto list = [](const std::set<std::string>& all) {
    return conform::json_array(all, [](const std::string& x) { return iso::io::json_string(x); });
  };
  return conform::json_object()
      .text("backend", c.backend)
      .text("precision", c.precision)
      .text("kernels", c.kernels)
      .text("device", c.device)
      .text("commit", c.commit)
      .text("strength", c.strength)
      .whole("cases", c.counted.total().cases())
      .set("ran", list(c.counted.reached))
      .set("failing", list(failing))
      .set("unsupported", list(unsupported))
      .set("native_shaders", list(native))
      .str();
}

}  // namespace

int verify(const command& c) {
  int code = support::success;
  bool failures = false;
  std::string summary;
  for (const std::string& file : c.files) {
    auto one = conform::read_certificate(file);
    if (support::failed(program, one, code)) return code;
    const bool current = one->is_current();
    const iso::result<bool> covered = current ? covers_its_ops(*one) : iso::result<bool>(true);
    if (support::failed(program, covered, code)) return code;
    support::print(file + ": " + one->backend + " " + one->precision + " " + one->kernels + " on " + one->device + ", coverage " +
                   iso::io::number_text(float(coverage_of(one->counted, one->kernel_ops).least())) +
                   (current ? "" : ", of another registry of ops") + "; " + summary_line(one->counted) + "\n");
    failures = failures || one->counted.failed() > 0 || !current || !*covered;
    summary += (summary.empty() ? "[\n" : ",\n") + summary_of(*one);
  }
  if (const std::string out = c.get("--out"); !out.empty())
    if (auto r = iso::io::write_file(out, summary + "\n]\n"); support::failed(program, r, code)) return code;
  return failures ? support::runtime_failure : support::success;
}

}  // namespace conform_program
