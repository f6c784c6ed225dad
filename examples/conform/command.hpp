#pragma once
/// The words that isotope-conform accepts.
#include <isotope/config/suggest.hpp>
#include <isotope/core/error.hpp>

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace conform_program {

inline constexpr std::string_view program = "isotope-conform";

/// A command, its flags with their values, and its files.
struct command {
  std::string name;
  std::map<std::string, std::string, std::less<>> values;
  std::vector<std::string> files;

  bool has(std::string_view flag) const { return values.contains(flag); }
  std::string get(std::string_view flag, std::string_view otherwise = {}) const {
    const auto found = values.find(flag);
    return found == values.end() ? std::string(otherwise) : found->second;
  }
  /// @error invalid_argument for anything but an integer in [least, most]
  isotope::result<std::int64_t> whole(std::string_view flag, std::int64_t otherwise, std::int64_t least, std::int64_t most) const {
    const auto found = values.find(flag);
    if (found == values.end()) return otherwise;
    std::int64_t x = 0;
    const char *first = found->second.data(), *last = first + found->second.size();
    const auto [end, error] = std::from_chars(first, last, x);
    if (error != std::errc() || end != last || x < least || x > most)
      return isotope::fail(isotope::errc::invalid_argument,
                           "'" + found->second + "' is not a whole number from " + std::to_string(least) + " to " + std::to_string(most),
                           std::string(flag), "give one");
    return x;
  }
};

struct flag_meaning {
  std::string_view flag, value, meaning;  // without a value it is a switch
};
inline constexpr flag_meaning flag_meanings[] = {
    {"--ops", "NAMES", "all, or ops parted by commas; default all"},
    {"--backend", "NAME", "cpu, or the backend that the program was built for, the default"},
    {"--precision", "NAME", "f32 or bf16, and f16 with native kernels of a gpu, to run those of f16 matrices; default: of the build"},
    {"--kernels", "SET", "reference, portable or native; default: of the build"},
    {"--shard", "I/N", "part I of N, 0 <= I < N; default 0/1"},
    {"--seed", "N", "of all random numbers; default 1"},
    {"--strength", "NAME", "fast, standard or full; default standard"},
    {"--repeat", "N", "N times as many random cases; default 1"},
    {"--out", "FILE", "the certificate, or the results of run-file, or what merge writes, or verify's summary for kernels/README.md"},
    {"--batch", "N", "cases that are dispatched together at most, 1 to 1048576; default 1024"},
    {"--skip", "N", "leave out cases with numbers below N"},
    {"--budget", "SECONDS", "the longest that a batch may take before its op counts as failed; 0: forever, in one process; default 600"},
    {"--checkpoint", "FILE", "where the run is saved on the way"},
    {"--resume", "", "go on from the checkpoint, if there is one"},
    {"--progress", "N", "a line on stderr every N cases; default 0: none"},
    {"--regressions", "FOLDER", "known failures: replayed first, new ones are added"},
    {"--failures", "FOLDER", "where each failure is written as a file for replay, shrunk"},
    {"--device", "NAME", "part of a device's name, or its index"},
    {"--jobs", "N", "batches that run beside each other, on as many openings of the device; default: all processors, 4 at most"},
    {"--threads", "N", "of the cpu backend; default: all processors"},
    {"--launch-size", "N", "invocations of a workgroup where kernels leave it open, or sweep: 1, 64, their own and the device's largest"},
    {"--manifest", "FILE", "run-file: cases, one JSON object a line"},
    {"--tensors", "FOLDER", "run-file: where the cases' safetensors files are"},
    {"--write", "", "golden: samples for ops that have none, or have another version than theirs"},
    {"--json", "", "plan: the ops with their operands and attributes as JSON"},
    {"--policy", "", "plan: what the ops promise of their arithmetic, as in docs/NUMERICS.md"},
    {"--generators", "", "plan: which generators make cases of which ops, and how many"},
    {"--require-device", "", "a device that is not there is a failure, not a skip"},
    {"--version", "", "what the program was built from"},
    {"--help", "", "this text"},
};
inline constexpr std::string_view commands[] = {"run", "plan", "merge", "verify", "replay", "run-file", "golden"};

inline std::string help_text() {
  std::string s =
      "isotope-conform run|plan|merge|verify|replay|run-file|golden [flags] [files]\n\n"
      "Tests every op and every gradient of a backend against references in f64.\n\n"
      "  run              runs the cases, prints counts, writes a certificate with --out\n"
      "  plan             lists the cases of each op without running them\n"
      "  merge FILES      one certificate from those of all shards\n"
      "  verify FILES     checks digest, sums and coverage of certificates\n"
      "  replay FILES     runs failures again that a run left behind\n"
      "  run-file         runs cases made elsewhere: --manifest, --tensors, --out\n"
      "  golden FOLDER    compares the references with what they gave when their versions were made\n\n";
  for (const flag_meaning& f : flag_meanings) {
    std::string left = "  " + std::string(f.flag) + (f.value.empty() ? "" : " " + std::string(f.value));
    left.resize(std::max<std::size_t>(left.size() + 1, 26), ' ');
    s += left + std::string(f.meaning) + "\n";
  }
  return s + "\nexit codes: 0 all passed (what is skipped or unsupported is counted), 1 failures or too little coverage, 2 bad usage\n";
}

/// @error unknown_key with a suggestion, missing_value
inline isotope::result<command> read_command(const std::vector<std::string>& words) {
  using isotope::errc, isotope::fail;
  command c;
  if (words.empty())
    return fail(errc::missing_value, "no command", "command line", "run, plan, merge, verify, replay, run-file or golden; --help explains");
  const std::vector<std::string> known(std::begin(commands), std::end(commands));
  std::size_t at = 0;
  if (!words[0].starts_with("--")) {
    c.name = words[at++];
    if (std::find(known.begin(), known.end(), c.name) == known.end())
      return fail(errc::unknown_key, "no command '" + c.name + "'", "command line",
                  isotope::config::did_you_mean(c.name, known, "run, plan, merge, verify, replay, run-file or golden"));
  }
  for (; at < words.size(); ++at) {
    std::string word = words[at];
    if (!word.starts_with("--")) {
      c.files.push_back(word);
      continue;
    }
    std::string value;
    const auto equals = word.find('=');
    const bool joined = equals != word.npos;
    if (joined) value = word.substr(equals + 1), word.resize(equals);
    const auto found =
        std::find_if(std::begin(flag_meanings), std::end(flag_meanings), [&](const flag_meaning& f) { return f.flag == word; });
    if (found == std::end(flag_meanings)) {
      std::vector<std::string> flags;
      for (const flag_meaning& f : flag_meanings) flags.emplace_back(f.flag);
      return fail(errc::unknown_key, "no flag '" + word + "'", "command line",
                  isotope::config::did_you_mean(word, flags, "--help lists them"));
    }
    if (c.has(word)) return fail(errc::invalid_argument, word + " stands twice", "command line", "give it once");
    if (!found->value.empty() && !joined) {
      if (at + 1 == words.size()) return fail(errc::missing_value, "needs a value: " + std::string(found->value), word, "add one");
      value = words[++at];
    }
    if (found->value.empty() && joined)
      return fail(errc::invalid_argument, "is a switch and takes no value", word, "leave out '" + value + "'");
    c.values[word] = value;
  }
  return c;
}

}  // namespace conform_program
