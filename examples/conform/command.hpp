#pragma once
/// The words that isotope-conform accepts.
#include "../support/command_words.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace conform_program {

inline constexpr std::string_view program = "isotope-conform";

struct command : support::command_words {};

inline constexpr support::flag_meaning flag_meanings[] = {
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
  s += support::list_of_flags(flag_meanings, 26);
  return s + "\nexit codes: 0 all passed (what is skipped or unsupported is counted), 1 failures or too little coverage, 2 bad usage\n";
}

/// @error missing_value without a command, unknown_key with a suggestion; as support::read_flags
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
  if (auto r = support::read_flags(std::span(words).subspan(at), flag_meanings, c); !r) return r.error();
  return c;
}

}  // namespace conform_program
