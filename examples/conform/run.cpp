/// isotope-conform run.
#include "failures.hpp"

#include "../support/exit_code.hpp"
#include "../support/output.hpp"

#include <cstdio>

namespace conform_program {
namespace {

class stderr_progress final : public conform::progress_sink {
 public:
  explicit stderr_progress(bool on) : on_(on) {}
  void at(const conform::progress& p) override {
    if (!on_) return;
    const std::string line = std::string(program) + ": " + line_of(p) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  }

 private:
  bool on_;
};

/// All cases of a shard as unsupported, for a device that is not there.
class unsupported_cases final : public conform::case_visitor {
 public:
  unsupported_cases(const conform::shard_of& shard, std::string why) : shard_(shard) {
    o_.is = conform::verdict::unsupported, o_.reason = std::move(why);
  }
  bool visit(conform::test_case&& c) override {
    if (shard_.takes(c.id)) counted.count(c, o_);
    return true;
  }
  conform::tally counted;

 private:
  conform::shard_of shard_;
  conform::outcome o_;
};

std::vector<std::string> ops_of_kernels(const conform::target_facts& f) {
  std::set<std::string> names;
  for (const auto& k : f.kernels)
    if (k.precision == f.program) names.insert(std::string(k.op->name));
  return {names.begin(), names.end()};
}

void print_failures(const conform::tally& t) {
  for (const auto& [id, record] : t.failures) {
    const auto j = iso::io::parse_json(record, "failure");
    if (j) support::print("case " + std::to_string(id) + ": " + support::one_line(j->find("line")->text) + "\n");
  }
  for (const auto& [reason, n] : t.missing) support::print(std::to_string(n) + " unsupported: " + support::one_line(reason) + "\n");
}

iso::result<conform::certificate> run_shard(const command& c, conform::certificate cert, conform::run_options o,
                                            const target_choice& target) {
  auto device = open_target(target);
  if (!device) {
    if (!device_is_missing(device.error()) || device_is_required(c)) return device.error();
    unsupported_cases none(o.shard, device.error().line());
    for_each_case(o.cases, none);
    cert.counted = std::move(none.counted);
    cert.device = "none";
    cert.launch = "none";
    return cert;
  }
  const auto info = (*device)->device();
  cert.device = info.name;
  cert.device_kind = name_of(info.kind);
  cert.driver = info.driver;
  cert.kernel_ops = ops_of_kernels((*device)->facts());
  cert.launch = (*device)->facts().launch;
  // A gpu that is a program on the processor works long on what a gpu does at once.
  if (info.kind == iso::device_kind::cpu && (*device)->facts().gpu) o.batch_elems = std::min<std::int64_t>(o.batch_elems, 1 << 17);
  auto fingerprint = conform::fingerprint_of(**device);
  if (!fingerprint) return fingerprint.error();
  cert.fingerprint = *fingerprint;
  stderr_progress heard(o.progress_interval > 0);
  conform::conformance_run run(**device, std::move(o), heard);
  auto counted = run.run();
  if (!counted) return counted.error();
  cert.counted = *std::move(counted);
  if (auto r = keep_failures(c, **device, cert.counted); !r) return r.error();
  return cert;
}

}  // namespace

int run(const command& c, const built_for& built) {
  int code = support::success;
  auto target = choose_target(c, built);
  if (support::failed(program, target, code)) return code;
  auto cases = choose_cases(c, *target);
  if (support::failed(program, cases, code)) return code;
  auto shard = choose_shard(c);
  if (support::failed(program, shard, code)) return code;
  auto batch = c.whole("--batch", conform::usual_batch, 1, conform::largest_batch);
  if (support::failed(program, batch, code)) return code;
  auto skip = c.whole("--skip", 0, 0, std::numeric_limits<std::int64_t>::max());
  if (support::failed(program, skip, code)) return code;
  auto interval = c.whole("--progress", 0, 0, std::numeric_limits<std::int64_t>::max());
  if (support::failed(program, interval, code)) return code;
  conform::run_options o;
  o.cases = *cases;
  o.shard = *shard;
  o.batch = *batch;
  o.skip = std::uint64_t(*skip);
  o.checkpoint_file = c.get("--checkpoint");
  o.resume = c.has("--resume");
  o.progress_interval = std::uint64_t(*interval);
  if (o.resume && o.checkpoint_file.empty())
    return support::report(program,
                           iso::fail(iso::errc::missing_value, "nothing to go on from", "--resume", "name the file with --checkpoint"));

  if (const std::string corpus = c.get("--regressions"); !corpus.empty()) {
    auto known = conform::read_regressions(corpus, o.cases.ops);
    if (support::failed(program, known, code)) return code;
    o.first = *std::move(known);
  }

  conform::certificate cert;
  cert.tool = built.version;
  cert.time = time_text();
  cert.backend = target->backend;
  cert.precision = target->precision;
  cert.kernels = target->kernels;
  cert.registry = conform::hex_text(conform::registry_hash()).view();
  cert.strength = std::string(name_of(o.cases.how)) + (o.cases.multiple > 1 ? " x " + std::to_string(o.cases.multiple) : "");
  cert.ops = c.get("--ops", "all");
  cert.seed = o.cases.seed;
  cert.shard = o.shard;
  auto done = run_shard(c, std::move(cert), std::move(o), *target);
  if (support::failed(program, done, code)) return code;
  if (const std::string out = c.get("--out"); !out.empty())
    if (auto r = iso::io::write_file(out, text_of(*done)); support::failed(program, r, code)) return code;
  print_failures(done->counted);
  if (const std::string line = regression_line(done->counted); !line.empty()) support::print(line + "\n");
  support::print(summary_line(done->counted) + "\n");
  return done->counted.failed() == 0 ? support::success : support::runtime_failure;
}

}  // namespace conform_program
