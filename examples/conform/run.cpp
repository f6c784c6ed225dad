/// isotope-conform run.
#include "failures.hpp"
#include "watched_run.hpp"

#include "../support/exit_code.hpp"
#include "../support/output.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace conform_program {
namespace {

/// Prints a line on stderr if the user wants one, and reports to the watching process.
class told_progress final : public conform::progress_sink {
 public:
  told_progress(bool lines, const support::work_log* log) : lines_(lines), log_(log) {}
  void at(const conform::progress& p) override {
    if (!lines_) return;
    const std::string line = std::string(program) + ": " + line_of(p) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  void begins(std::string_view op) override {
    if (log_ != nullptr) log_->begins(op);
  }

 private:
  bool lines_;
  const support::work_log* log_;
};

/// Returns all cases of a shard as skipped, for a missing device.
class skipped_cases final : public conform::case_visitor {
 public:
  skipped_cases(const conform::shard_of& shard, std::string why) : shard_(shard), o_(conform::skipped_because(std::move(why))) {}
  bool visit(conform::test_case&& c) override {
    if (shard_.takes(c.id)) counted.count(c, o_);
    return true;
  }
  conform::counts counted;

 private:
  conform::shard_of shard_;
  conform::case_result o_;
};

/// The ops that one device can run: not those that exchange numbers with other devices.
std::vector<std::string> ops_of_kernels(const conform::target_facts& f) {
  std::set<std::string> names;
  for (const auto& k : f.kernels)
    if (k.precision == f.program && !k.op->collective) names.insert(std::string(k.op->name));
  return {names.begin(), names.end()};
}

void print_failures(const conform::counts& t) {
  for (const auto& [id, record] : t.failures) {
    const auto j = iso::io::parse_json(record, "failure");
    if (j) support::print("case " + std::to_string(id) + ": " + support::one_line(j->find("line")->text) + "\n");
  }
  for (const auto& [reason, n] : t.missing) support::print(std::to_string(n) + " unsupported: " + support::one_line(reason) + "\n");
  for (const auto& [reason, n] : t.skips) support::print(std::to_string(n) + " skipped: " + support::one_line(reason) + "\n");
}
/// Says what a missing device leaves out, as prominently as a pass.
void print_skip(const conform::certificate& c) {
  support::print("SKIPPED: " + c.device_kind + ". With ISOTOPE_REQUIRE_GPU=1 or --require-device this is a failure\n");
}

iso::result<conform::certificate> run_shard(const command& c, conform::certificate cert, conform::run_options o,
                                            const target_choice& target, const run_manner& how) {
  const auto required = device_is_required(c);
  if (!required) return required.error();
  auto device = open_target(target);
  if (!device) {
    if (!device_is_missing(device.error()) || *required) return device.error();
    skipped_cases none(o.shard, "no device");
    for_each_case(o.cases, none);
    cert.counted = std::move(none.counted);
    cert.device = "none";
    cert.launch = "none";
    cert.device_kind = support::one_line(device.error().line());
    return cert;
  }
  const auto info = (*device)->device();
  cert.device = info.name;
  cert.device_kind = name_of(info.kind);
  cert.driver = info.driver;
  cert.kernel_ops = ops_of_kernels((*device)->facts());
  cert.launch = (*device)->facts().launch;
  // A software driver takes long for what a gpu does at once.
  if (info.kind == iso::device_kind::cpu && (*device)->facts().gpu) o.batch_elems = std::min<std::int64_t>(o.batch_elems, 1 << 17);
  constexpr std::string_view own_work = "fingerprint";
  if (!o.endless.contains(own_work)) {
    if (how.log != nullptr) how.log->begins(own_work);
    auto fingerprint = conform::fingerprint_of(**device);
    if (!fingerprint) return fingerprint.error();
    cert.fingerprint = fingerprint->digits;
    cert.arithmetic = std::move(fingerprint->arithmetic);
  }
  std::vector<std::unique_ptr<conform::executor>> others;
  std::vector<conform::executor*> more;
  while (std::int64_t(others.size()) + 1 < how.jobs) {
    auto other = open_target(target);
    if (!other) return other.error();
    more.push_back(other->get());
    others.push_back(*std::move(other));
  }
  told_progress heard(o.progress_interval > 0, how.log);
  const auto endless = o.endless;
  conform::conformance_run run(**device, std::move(o), heard, more);
  auto counted = run.run();
  if (!counted) return counted.error();
  cert.counted = *std::move(counted);
  if (auto r = keep_failures(c, **device, cert.counted, endless); !r) return r.error();
  return cert;
}

/// Runs everything from opening the device to the last line.
struct run_job {
  const command& c;
  const conform::certificate& cert;
  const target_choice& target;

  int run(conform::run_options o, const run_manner& how) const {
    int code = support::success;
    const auto ops = o.cases.ops;
    auto done = run_shard(c, cert, std::move(o), target, how);
    const bool gone = !done && (done.error().code == iso::errc::timeout || done.error().code == iso::errc::device_lost);
    if (support::failed(program, done, code)) return gone && how.log != nullptr ? device_gone : code;
    if (const std::string out = c.get("--out"); !out.empty())
      if (auto r = iso::io::write_file(out, text_of(*done)); support::failed(program, r, code)) return code;
    if (!done->has_device()) print_skip(*done);
    print_failures(done->counted);
    if (const std::string line = regression_line(done->counted); !line.empty()) support::print(line + "\n");
    const bool covered = covers(*done, ops);
    support::print(summary_line(done->counted) + "\n");
    return done->counted.failed() == 0 && covered ? support::success : support::runtime_failure;
  }
};

}  // namespace

int run(const command& c, const built_for& built) {
  int code = support::success;
  auto asked = choose(c, built);
  if (support::failed(program, asked, code)) return code;
  auto batch = c.whole("--batch", conform::usual_batch, 1, conform::largest_batch);
  if (support::failed(program, batch, code)) return code;
  auto skip = c.whole("--skip", 0, 0, std::numeric_limits<std::int64_t>::max());
  if (support::failed(program, skip, code)) return code;
  auto interval = c.whole("--progress", 0, 0, std::numeric_limits<std::int64_t>::max());
  if (support::failed(program, interval, code)) return code;
  conform::run_options o;
  o.cases = asked->cases;
  o.shard = asked->shard;
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
  cert.commit = built.commit;
  cert.build = std::string(built.compiler) + ", " + std::string(built.type) + ", " + std::string(built.cpu_arch);
  cert.time = time_text();
  cert.backend = asked->target.backend;
  cert.precision = asked->target.precision;
  cert.kernels = asked->target.kernels;
  cert.registry = conform::hex_text(conform::registry_hash()).view();
  cert.strength = std::string(name_of(o.cases.how)) + (o.cases.multiple > 1 ? " x " + std::to_string(o.cases.multiple) : "");
  cert.ops = c.get("--ops", "all");
  cert.seed = o.cases.seed;
  cert.shard = o.shard;
  auto budget = c.whole("--budget", 600, 0, 86400);
  if (support::failed(program, budget, code)) return code;
  const std::int64_t processors = std::max(1u, std::thread::hardware_concurrency());
  auto jobs = c.whole("--jobs", std::min<std::int64_t>(processors, 4), 1, 64);
  if (support::failed(program, jobs, code)) return code;
  const run_job job{c, cert, asked->target};
  return *budget == 0 ? job.run(std::move(o), {*jobs, nullptr}) : watched(job, std::move(o), *jobs, *budget);
}

}  // namespace conform_program
