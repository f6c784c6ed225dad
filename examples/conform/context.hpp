#pragma once
/// What the commands share: the executor and the selection that the flags request.
#include "command.hpp"
#include "commands.hpp"
#include "executors.hpp"

#include "../support/environment.hpp"
#include "../support/output.hpp"

#include <isotope/conform/certificate.hpp>
#include <isotope/conform/fingerprint.hpp>

#include <ctime>
#include <memory>
#include <string>

namespace conform_program {

namespace conform = iso::conform;

struct target_choice {
  std::string backend, precision, kernels;
  iso::gpu_options device;
  bool sweep = false;
};

/// @error invalid_argument, listing the valid values
inline iso::result<target_choice> choose_target(const command& c, const built_for& built) {
  target_choice t{c.get("--backend", built.backend), c.get("--precision", built.precision), c.get("--kernels", built.kernels), {}};
  const auto refuse = [](const std::string& what, const std::string& flag, const std::string& values) {
    return iso::fail(iso::errc::invalid_argument, what, flag, values);
  };
  if (t.backend != "cpu" && t.backend != built.backend)
    return refuse("no backend '" + t.backend + "' in this program", "--backend",
                  built.backend == "cpu" ? "cpu; build with -DBACKEND=" + t.backend : "cpu or " + std::string(built.backend));
  const bool halves = t.backend != "cpu" && t.precision == "f16";
  if (t.precision != "f32" && t.precision != "bf16" && !halves)
    return refuse("no precision '" + t.precision + "'" + (t.backend == "cpu" ? " on the cpu" : ""), "--precision",
                  t.backend == "cpu" ? "f32 or bf16" : "f32, bf16 or f16");
  if (t.kernels != "reference" && t.kernels != "portable" && t.kernels != "native")
    return refuse("no kernel set '" + t.kernels + "'", "--kernels", "reference, portable or native");
  auto threads = c.whole("--threads", 0, 0, 1024);
  if (!threads) return threads.error();
  t.device.threads = int(*threads);
  t.device.name = c.get("--device");
  if (c.has("--launch-size")) {
    if (t.backend == "cpu") return refuse("processors have no workgroups", "--launch-size", "--threads says how many threads run");
    t.sweep = c.get("--launch-size") == "sweep";
    auto size = t.sweep ? iso::result<std::int64_t>(-1) : c.whole("--launch-size", -1, 0, std::numeric_limits<std::int32_t>::max());
    if (!size) return size.error();
    t.device.diagnose.launch_size = std::int32_t(*size);
  }
  t.device.timeout_seconds = 300;  // a batch on a software driver takes minutes if others use the processor, too
  return t;
}
inline iso::dtype program_format(const target_choice& t) {
  return t.precision == "bf16" ? iso::dtype::bf16 : t.precision == "f16" ? iso::dtype::f16 : iso::dtype::f32;
}
inline opened open_target(const target_choice& t) {
  const auto open = t.backend == "cpu"     ? (t.precision == "f32" ? open_cpu_f32 : open_cpu_bf16)
                    : t.precision == "f16" ? open_built_f16
                                           : (t.precision == "f32" ? open_built_f32 : open_built_bf16);
  auto e = open(t.kernels, t.device);
  if (e && t.sweep)
    if (auto r = (*e)->sweep(); !r) return r.error();
  return e;
}
/// Whether there is simply no device, rather than a mistake or a failure.
inline bool device_is_missing(const iso::failure& f) { return f.code == iso::errc::no_device || f.code == iso::errc::missing_feature; }
/// Whether a missing device is a failure. @error ISOTOPE_REQUIRE_GPU is not 0, 1, true or false
inline iso::result<bool> device_is_required(const command& c) {
  const auto variables = support::captured_environment();
  const auto found = variables.find("ISOTOPE_REQUIRE_GPU");
  const std::string value = found == variables.end() ? "0" : found->second;
  if (value != "0" && value != "1" && value != "true" && value != "false")
    return iso::fail(iso::errc::invalid_argument, "is '" + value + "', not 0, 1, true or false", "variable ISOTOPE_REQUIRE_GPU",
                     "give one of these, or unset it");
  return c.has("--require-device") || value == "1" || value == "true";
}

inline iso::result<conform::selection> choose_cases(const command& c, const target_choice& t, const built_for& built) {
  conform::selection s;
  auto ops = conform::choose_ops(c.get("--ops", "all"), t.backend == "cpu" || built.meshes);
  if (!ops) return ops.error();
  s.ops = *std::move(ops);
  s.program = program_format(t);
  s.blocks = t.backend == "cpu" && (s.program == iso::dtype::f32 || s.program == iso::dtype::bf16);  // no other kernels read them
  if (s.program == iso::dtype::f16)
    for (const conform::spec* op : s.ops)
      if (op->name != "attention" && op->name != "matmul")
        return iso::fail(iso::errc::invalid_argument, "programs in f16 run what matrix units take, and not " + std::string(op->name),
                         "--ops", "attention, matmul or both");
  const std::string how = c.get("--strength", "standard");
  bool known = false;
  for (const auto k : {conform::strength::fast, conform::strength::standard, conform::strength::full})
    if (name_of(k) == how) s.how = k, known = true;
  if (!known) return iso::fail(iso::errc::invalid_argument, "no strength '" + how + "'", "--strength", "fast, standard or full");
  auto seed = c.whole("--seed", 1, 0, std::numeric_limits<std::int64_t>::max());
  if (!seed) return seed.error();
  s.seed = std::uint64_t(*seed);
  auto multiple = c.whole("--repeat", 1, 1, 1 << 20);
  if (!multiple) return multiple.error();
  s.multiple = int(*multiple);
  return s;
}
inline iso::result<conform::shard_of> choose_shard(const command& c) {
  const std::string text = c.get("--shard", "0/1");
  const auto slash = text.find('/');
  std::int64_t i = -1, n = 0;
  const auto read = [](std::string_view s, std::int64_t& x) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), x);
    return error == std::errc() && end == s.data() + s.size();
  };
  if (slash == text.npos || !read(std::string_view(text).substr(0, slash), i) || !read(std::string_view(text).substr(slash + 1), n))
    return iso::fail(iso::errc::invalid_argument, "'" + text + "' is no part of a whole", "--shard", "i/n with 0 <= i < n");
  return conform::make_shard(i, n);
}

/// What run and plan are asked to do.
struct chosen {
  target_choice target;
  conform::selection cases;
  conform::shard_of shard;
};
/// @error invalid_argument, listing the valid values
inline iso::result<chosen> choose(const command& c, const built_for& built) {
  auto target = choose_target(c, built);
  if (!target) return target.error();
  auto cases = choose_cases(c, *target, built);
  if (!cases) return cases.error();
  auto shard = choose_shard(c);
  if (!shard) return shard.error();
  return chosen{*std::move(target), *std::move(cases), *shard};
}

/// Checks that enough cases of each op ran and prints a line for each op where they did not. A shard, and a missing device, are not judged.
inline bool covers(const conform::certificate& c, std::span<const conform::spec* const> ops) {
  if (c.shard.count > 1 || !c.has_device()) return true;
  const auto lines = too_little(c.counted, ops);
  for (const std::string& line : lines) support::print(line + "\n");
  return lines.empty();
}
/// The same for a certificate that was read, whose ops are names. @error invalid_argument: an op that does not exist
inline iso::result<bool> covers_its_ops(const conform::certificate& c) {
  auto ops = conform::choose_ops(c.ops);
  if (!ops) return ops.error();
  if (c.ops == "all") std::erase_if(*ops, [&](const conform::spec* s) { return s->for_meshes && !runs_op(c.kernel_ops, *s); });
  return covers(c, *ops);
}

inline std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  gmtime_r(&now, &t);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t)};
}

}  // namespace conform_program
