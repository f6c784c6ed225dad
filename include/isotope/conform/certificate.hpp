#pragma once
/// Certificates: what ran where with which result, as canonical JSON with a digest. Two runs differ only in the time.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run.hpp"

namespace isotope::conform {

/// Format 1 had no commit, build, tracks, variants and skipped cases; it is still read but never written.
inline constexpr std::int64_t certificate_format = 2, oldest_certificate_format = 1;

/// Which fractions were covered. The coverage of a certificate is the smallest of them.
struct coverage {
  double ops = 0;        // ops with a case that passed
  double gradients = 0;  // differentiable ops with a gradient case
  double kernels = 0;    // ops of the target's kernel table that a plan reached
  double runs = 0;       // cases that ran, of those that were to run
  double launches = 0;   // workgroup sizes that kernels ran with, of those of a sweep
  double least() const { return std::min({ops, gradients, kernels, runs, launches}); }
};

/// Whether a target with kernels of these ops runs s alone.
inline bool runs_op(std::span<const std::string> kernel_ops, const spec& s) {
  return std::find(kernel_ops.begin(), kernel_ops.end(), s.name) != kernel_ops.end();
}
/// Fractions of the ops that the target should run: those that only plans for several devices have count where it has a kernel.
inline coverage coverage_of(const counts& t, std::span<const std::string> kernel_ops) {
  const auto share = [](std::int64_t n, std::int64_t of) { return of == 0 ? 1.0 : double(n) / double(of); };
  std::int64_t specified = 0, ops = 0, gradients = 0, differentiable = 0, kernels = 0;
  for (const spec& s : every_spec()) {
    if (s.for_meshes && !runs_op(kernel_ops, s)) continue;
    ++specified;
    const auto found = t.ops.find(std::string(s.name));
    ops += found != t.ops.end() && found->second.passed > 0 ? 1 : 0;
    if (s.gradient == nullptr) continue;
    ++differentiable;
    gradients += found != t.ops.end() && found->second.by_kind[std::size_t(case_kind::gradient)] > 0 ? 1 : 0;
  }
  for (const auto& k : kernel_ops) kernels += t.reached.contains(k) ? 1 : 0;
  std::int64_t sizes = 0, swept = 0;
  for (const auto& [kernel, l] : t.launches) sizes += std::int64_t(l.ran.size()), swept += std::int64_t(l.all.size());
  const op_counts all = t.total();
  return {share(ops, specified), share(gradients, differentiable), share(kernels, std::int64_t(kernel_ops.size())),
          share(all.ran(), all.cases()), share(sizes, swept)};
}

/// Lists the ops of which fewer cases ran than their specification asks for, one line each. Only for a whole run: a shard may have few cases of an
/// op.
inline std::vector<std::string> too_little(const counts& t, std::span<const spec* const> ops) {
  std::vector<std::string> lines;
  for (const spec* s : ops) {
    const auto found = t.ops.find(std::string(s->name));
    const std::int64_t ran = found == t.ops.end() ? 0 : found->second.ran();
    if (ran < s->least_cases)
      lines.push_back("too little coverage: " + std::to_string(ran) + " cases of " + std::string(s->name) +
                      " ran, its specification asks for " + std::to_string(s->least_cases));
  }
  return lines;
}

struct certificate {
  std::string tool, commit, build, time, backend, precision, kernels, device, device_kind, driver, fingerprint, registry, strength, ops,
      launch;
  std::map<std::string, std::string> arithmetic;  // observed properties of the device: see fingerprint.hpp
  std::uint64_t seed = 1;
  shard_of shard;
  std::vector<std::string> kernel_ops;  // of the target's table
  counts counted;

  bool has_device() const { return device != "none"; }
  /// Whether it comes from another registry of ops: then its coverage says nothing about the current ops.
  bool is_current() const { return registry == hex_text(registry_hash()).view(); }
};

/// Returns what ran on each track, summed over its ops.
inline json_object tracks_of(const counts& t) {
  std::map<std::string, op_counts> all;
  std::map<std::string, std::int64_t> ops;
  for (const auto& [name, o] : t.ops) all[o.on].add(o), ++ops[o.on];
  json_object tracks;
  for (const auto& [on, o] : all)
    tracks.set(on, json_object()
                       .whole("ops", ops[on])
                       .whole("passed", o.passed)
                       .whole("failed", o.failed)
                       .whole("skipped", o.skipped)
                       .whole("unsupported", o.unsupported)
                       .str());
  return tracks;
}
/// Returns one digest of all shaders that ran; empty if kernels are processor code, which commit and build identify.
inline std::string kernels_digest(const counts& t) {
  std::string all;
  for (const auto& [variant, digest] : t.variants)
    if (!digest.empty()) all += variant + " " + digest + "\n";
  return all.empty() ? "" : sha256::of(all);
}

/// Everything but the digest and the time.
inline json_object facts_in(const certificate& c) {
  const coverage v = coverage_of(c.counted, c.kernel_ops);
  const op_counts t = c.counted.total();
  json_object device, numbers, covered, arithmetic;
  for (const auto& [key, value] : c.arithmetic) arithmetic.text(key, value);
  device.text("backend", c.backend).text("name", c.device).text("kind", c.device_kind).text("driver", c.driver);
  numbers.whole("cases", t.cases()).whole("passed", t.passed).whole("failed", t.failed).whole("unsupported", t.unsupported);
  numbers.whole("skipped", t.skipped);
  covered.number("ops", v.ops)
      .number("gradients", v.gradients)
      .number("kernels", v.kernels)
      .number("runs", v.runs)
      .number("launches", v.launches)
      .number("least", v.least());
  json_object o;
  o.whole("format", certificate_format).text("tool", c.tool).text("precision", c.precision).text("kernels", c.kernels);
  o.text("commit", c.commit)
      .text("build", c.build)
      .text("kernels_digest", kernels_digest(c.counted))
      .set("tracks", tracks_of(c.counted).str());
  o.set("device", device.str())
      .text("fingerprint", c.fingerprint)
      .set("arithmetic", arithmetic.str())
      .text("registry", c.registry)
      .text("strength", c.strength)
      .text("ops", c.ops)
      .text("launch_size", c.launch);
  o.text("seed", hex_text(c.seed).view()).set("shard", json_object().whole("index", c.shard.index).whole("count", c.shard.count).str());
  o.set("kernel_ops", json_array(c.kernel_ops, [](const std::string& x) { return io::json_string(x); }));
  o.set("tally", json_of(c.counted)).set("counts", numbers.str()).set("coverage", covered.str());
  return o;
}
inline std::string text_of(const certificate& c) {
  json_object o = facts_in(c);
  const std::string digest = sha256::of(o.str());
  return o.text("digest", digest).text("time", c.time).str() + "\n";
}

/// Reads a certificate and checks everything in it that can be derived: digest and sums; for this format and registry, also coverage and every other
/// such number.
/// @error not_found, bad_format, corrupt, version_mismatch
inline result<certificate> read_certificate(const std::string& path) {
  auto file = io::read_file(path);
  if (!file) return file.error();
  auto j = io::parse_json(file->text(), path);
  if (!j) return j.error();
  const auto malformed = [&](const std::string& what) {
    return fail(errc::bad_format, "a certificate without a usable '" + what + "'", path, "run again");
  };
  certificate c;
  std::int64_t format = 0;
  if (!read_whole(j->find("format"), format)) return malformed("format");
  if (format < oldest_certificate_format || format > certificate_format)
    return fail(errc::version_mismatch, "a certificate of format " + std::to_string(format), path,
                "this program reads " + std::to_string(oldest_certificate_format) + " to " + std::to_string(certificate_format));
  for (const auto& [key, to] : {std::pair("commit", &c.commit), std::pair("build", &c.build)}) {
    const io::json* x = j->find(key);
    if (format > 1 && (x == nullptr || x->is != io::json::kind::string)) return malformed(key);
    if (x != nullptr) *to = x->text;
  }
  for (const auto& [key, to] :
       {std::pair("tool", &c.tool), std::pair("time", &c.time), std::pair("precision", &c.precision), std::pair("kernels", &c.kernels),
        std::pair("fingerprint", &c.fingerprint), std::pair("registry", &c.registry), std::pair("strength", &c.strength),
        std::pair("ops", &c.ops), std::pair("launch_size", &c.launch)}) {
    const io::json* x = j->find(key);
    if (x == nullptr || x->is != io::json::kind::string) return malformed(key);
    *to = x->text;
  }
  const io::json* arithmetic = j->find("arithmetic");
  if (arithmetic == nullptr || arithmetic->is != io::json::kind::object) return malformed("arithmetic");
  for (const auto& m : arithmetic->members) c.arithmetic[m.key] = m.value.text;
  const io::json *device = j->find("device"), *shard = j->find("shard"), *kernel_ops = j->find("kernel_ops"), *digest = j->find("digest");
  if (device == nullptr) return malformed("device");
  for (const auto& [key, to] : {std::pair("backend", &c.backend), std::pair("name", &c.device), std::pair("kind", &c.device_kind),
                                std::pair("driver", &c.driver)}) {
    const io::json* x = device->find(key);
    if (x == nullptr || x->is != io::json::kind::string) return malformed(std::string("device.") + key);
    *to = x->text;
  }
  if (!record_detail::read_hex(j->find("seed"), c.seed)) return malformed("seed");
  if (shard == nullptr || !read_whole(shard->find("index"), c.shard.index) || !read_whole(shard->find("count"), c.shard.count) ||
      !make_shard(c.shard.index, c.shard.count))
    return malformed("shard");
  if (kernel_ops == nullptr) return malformed("kernel_ops");
  for (const io::json& k : kernel_ops->items) c.kernel_ops.push_back(k.text);
  if (!read_counts(j->find("tally"), c.counted)) return malformed("tally");
  if (digest == nullptr) return malformed("digest");
  json_object contents;
  for (const auto& m : j->members)
    if (m.key != "digest" && m.key != "time") contents.set(m.key, canonical(m.value));
  const bool whole = sha256::of(contents.str()) == digest->text;
  const bool derived = format < certificate_format || !c.is_current() || text_of(c) == file->text();
  if (!whole || !derived) return fail(errc::corrupt, "its counts, coverage or digest are not those of its contents", path, "run again");
  return c;
}

/// Merges all parts of a run into one certificate. @error invalid_argument: parts of different runs, one missing, one twice; version_mismatch:
/// another registry
inline result<certificate> merge(std::span<const certificate> parts) {
  if (parts.empty()) return fail(errc::invalid_argument, "no certificates", "merge", "name those of all shards");
  if (!parts[0].is_current())
    return fail(errc::version_mismatch, "parts of another registry of ops", "merge", "merge them with the program that wrote them");
  certificate all = parts[0];
  all.counted = {};
  all.shard = {0, 1};
  const auto count = parts[0].shard.count;
  std::set<std::int64_t> seen;
  for (const certificate& c : parts) {
    certificate bare = c;
    bare.counted = {};
    bare.shard = {0, 1};
    bare.time = all.time;
    if (text_of(bare) != text_of(all))
      return fail(errc::invalid_argument, "part " + std::to_string(c.shard.index) + " is of another run, device or registry", "merge",
                  "merge parts that differ in their shard alone");
    if (c.shard.count != count)
      return fail(errc::invalid_argument, "parts of " + std::to_string(count) + " and of " + std::to_string(c.shard.count), "merge",
                  "merge the parts of one division");
    if (!seen.insert(c.shard.index).second)
      return fail(errc::invalid_argument, "part " + std::to_string(c.shard.index) + " of " + std::to_string(count) + " is there twice",
                  "merge", "name every part once");
  }
  for (std::int64_t k = 0; k < count; ++k)
    if (!seen.contains(k))
      return fail(errc::invalid_argument, "part " + std::to_string(k) + " of " + std::to_string(count) + " is missing", "merge", "run it");
  for (const certificate& c : parts) {
    all.counted.add(c.counted);
    if (c.time > all.time) all.time = c.time;
  }
  return all;
}

/// Returns the last line of a run.
inline std::string summary_line(const counts& t) {
  const op_counts all = t.total();
  return std::to_string(all.cases()) + " cases, " + std::to_string(all.passed) + " passed, " + std::to_string(all.failed) + " failed, " +
         std::to_string(all.skipped) + " skipped, " + std::to_string(all.unsupported) + " unsupported";
}
/// Returns how many known failures were replayed and how many of them still fail; empty if none.
inline std::string regression_line(const counts& t) {
  if (t.regressions.empty()) return {};
  return std::to_string(t.regressions.size()) + " known failures replayed, " + std::to_string(t.failed() - t.total().failed) +
         " of them fail";
}

}  // namespace isotope::conform
