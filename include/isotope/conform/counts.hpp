#pragma once
/// The counts of a run. They are additive, so shards can be merged and runs resumed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "case_record.hpp"

namespace isotope::conform {

struct op_counts {
  std::array<std::int64_t, 4> by_kind{};  // forward, gradient, law, refusal
  std::int64_t passed = 0, failed = 0, unsupported = 0, skipped = 0;
  std::int64_t version = 0;  // of the specification
  std::string on;            // its track
  std::int64_t cases() const { return passed + failed + unsupported + skipped; }
  std::int64_t ran() const { return passed + failed; }
  void add(const op_counts& o) {
    for (std::size_t k = 0; k < by_kind.size(); ++k) by_kind[k] += o.by_kind[k];
    passed += o.passed, failed += o.failed, unsupported += o.unsupported, skipped += o.skipped;
    if (!o.on.empty()) version = o.version, on = o.on;
  }
  friend bool operator==(const op_counts&, const op_counts&) = default;
};

/// Workgroup sizes of an op's kernel: all of a sweep, and those that it ran with.
struct launch_counts {
  std::set<std::int64_t> all, ran;
  void add(const launch_counts& o) {
    all.insert(o.all.begin(), o.all.end());
    ran.insert(o.ran.begin(), o.ran.end());
  }
  friend bool operator==(const launch_counts&, const launch_counts&) = default;
};

struct counts {
  static constexpr std::size_t failures_kept = 16;
  std::map<std::string, op_counts> ops;
  std::map<std::uint64_t, std::string> failures;   // the first by case number, as records
  std::map<std::string, std::int64_t> missing;     // reasons why cases are unsupported
  std::map<std::string, std::int64_t> skips;       // reasons why cases were skipped
  std::set<std::string> reached;                   // ops whose kernels ran
  std::map<std::string, std::string> regressions;  // replayed known failures, by digest: pass, fail, unsupported
  std::set<std::string> tiers;                     // kernels that ran, if the backend reports them
  std::map<std::string, launch_counts> launches;   // of those with workgroups
  std::map<std::string, std::string> variants;     // kernels that ran, each with a digest of its shader if it has one

  op_counts total() const {
    op_counts t;
    for (const auto& [name, o] : ops) t.add(o);
    return t;
  }
  std::int64_t failed() const {
    std::int64_t n = total().failed;
    for (const auto& [digest, verdict] : regressions) n += verdict == "fail" ? 1 : 0;
    return n;
  }
  void keep_failure(std::uint64_t id, std::string record) {
    failures.emplace(id, std::move(record));
    while (failures.size() > failures_kept) failures.erase(std::prev(failures.end()));
  }
  void count(const test_case& c, const case_result& o) {
    op_counts& t = ops[std::string(c.of->name)];
    ++t.by_kind[std::size_t(c.kind)];
    t.version = c.of->version;
    t.on = name_of(c.of->on);
    switch (o.is) {
      case verdict::passed: ++t.passed; break;
      case verdict::failed: ++t.failed; break;
      case verdict::unsupported: ++t.unsupported, ++missing[std::string(c.of->name) + ": " + o.reason]; break;
      case verdict::skipped: ++t.skipped, ++skips[o.reason]; break;
    }
  }
  void add(const counts& other) {
    for (const auto& [name, o] : other.ops) ops[name].add(o);
    for (const auto& [id, record] : other.failures) keep_failure(id, record);
    for (const auto& [reason, n] : other.missing) missing[reason] += n;
    for (const auto& [reason, n] : other.skips) skips[reason] += n;
    variants.insert(other.variants.begin(), other.variants.end());
    reached.insert(other.reached.begin(), other.reached.end());
    regressions.insert(other.regressions.begin(), other.regressions.end());
    tiers.insert(other.tiers.begin(), other.tiers.end());
    for (const auto& [kernel, sizes] : other.launches) launches[kernel].add(sizes);
  }
};

inline std::string json_of(const counts& t) {
  json_object ops, missing, skips, regressions, launches, variants;
  const auto sizes = [](const std::set<std::int64_t>& s) { return json_array(s, [](std::int64_t n) { return std::to_string(n); }); };
  for (const auto& [kernel, l] : t.launches) launches.set(kernel, json_object().set("all", sizes(l.all)).set("ran", sizes(l.ran)).str());
  for (const auto& [name, o] : t.ops) {
    json_object p;
    p.whole("forward", o.by_kind[0]).whole("gradient", o.by_kind[1]).whole("law", o.by_kind[2]).whole("refusal", o.by_kind[3]);
    p.whole("passed", o.passed).whole("failed", o.failed).whole("unsupported", o.unsupported).whole("skipped", o.skipped);
    p.whole("version", o.version).text("track", o.on);
    ops.set(name, p.str());
  }
  for (const auto& [reason, n] : t.missing) missing.whole(reason, n);
  for (const auto& [reason, n] : t.skips) skips.whole(reason, n);
  for (const auto& [variant, digest] : t.variants) variants.text(variant, digest);
  for (const auto& [digest, verdict] : t.regressions) regressions.text(digest, verdict);
  const auto names = [](const std::set<std::string>& s) { return json_array(s, [](const std::string& x) { return io::json_string(x); }); };
  return json_object()
      .set("ops", ops.str())
      .set("failures", json_array(t.failures, [](const auto& f) { return f.second; }))
      .set("unsupported", missing.str())
      .set("skipped", skips.str())
      .set("variants", variants.str())
      .set("regressions", regressions.str())
      .set("reached", names(t.reached))
      .set("tiers", names(t.tiers))
      .set("launches", launches.str())
      .str();
}
/// Returns false if a member is missing or malformed. Certificates of the first format count nothing skipped and name no variants.
inline bool read_counts(const io::json* j, counts& t) {
  if (j == nullptr) return false;
  const io::json *ops = j->find("ops"), *failures = j->find("failures"), *missing = j->find("unsupported"), *reached = j->find("reached"),
                 *tiers = j->find("tiers"), *regressions = j->find("regressions"), *launches = j->find("launches");
  if (ops == nullptr || failures == nullptr || missing == nullptr || reached == nullptr || tiers == nullptr || regressions == nullptr ||
      launches == nullptr)
    return false;
  bool ok = true;
  for (const auto& m : ops->members) {
    op_counts o;
    ok = ok && read_whole(m.value.find("forward"), o.by_kind[0]) && read_whole(m.value.find("gradient"), o.by_kind[1]) &&
         read_whole(m.value.find("law"), o.by_kind[2]) && read_whole(m.value.find("refusal"), o.by_kind[3]) &&
         read_whole(m.value.find("passed"), o.passed) && read_whole(m.value.find("failed"), o.failed) &&
         read_whole(m.value.find("unsupported"), o.unsupported);
    if (const io::json* x = m.value.find("skipped"); x != nullptr) ok = ok && read_whole(x, o.skipped);
    if (const io::json* x = m.value.find("version"); x != nullptr) ok = ok && read_whole(x, o.version);
    if (const io::json* x = m.value.find("track"); x != nullptr) o.on = x->text;
    std::int64_t sum = 0;
    for (const auto n : o.by_kind) ok = ok && n >= 0, sum += n;
    ok = ok && o.passed >= 0 && o.failed >= 0 && o.unsupported >= 0 && o.skipped >= 0 && sum == o.cases();
    t.ops[m.key] = o;
  }
  for (const io::json& f : failures->items) {
    std::int64_t id = 0;
    ok = ok && read_whole(f.find("id"), id) && id >= 0;
    t.keep_failure(std::uint64_t(id), canonical(f));
  }
  for (const auto& m : missing->members) ok = ok && read_whole(&m.value, t.missing[m.key]);
  if (const io::json* skips = j->find("skipped"); skips != nullptr)
    for (const auto& m : skips->members) ok = ok && read_whole(&m.value, t.skips[m.key]);
  if (const io::json* variants = j->find("variants"); variants != nullptr)
    for (const auto& m : variants->members) t.variants[m.key] = m.value.text;
  for (const auto& m : regressions->members) t.regressions[m.key] = m.value.text;
  for (const io::json& x : reached->items) t.reached.insert(x.text);
  for (const io::json& x : tiers->items) t.tiers.insert(x.text);
  for (const auto& m : launches->members)
    for (const auto& [key, to] : {std::pair("all", &launch_counts::all), std::pair("ran", &launch_counts::ran)}) {
      const io::json* sizes = m.value.find(key);
      ok = ok && sizes != nullptr;
      if (sizes == nullptr) continue;
      for (const io::json& x : sizes->items) {
        std::int64_t n = 0;
        ok = ok && read_whole(&x, n);
        (t.launches[m.key].*to).insert(n);
      }
    }
  return ok;
}

}  // namespace isotope::conform
