/// bench_decode SIZE SLOTS CACHED [RUNS] [--prompt N] [--weights FORMAT] [--a8] [--batch-invariant] [--threads N] [--ask] [--profile]
/// [--no-early-start] [--no-joins] [--no-halves] [--no-whole-step] [--no-row-norms] [--one-workgroup] [--readback] [--calibration FOLDER]: one token of each of SLOTS
/// sequences of a GPT, behind CACHED tokens, on the backend of this build: microseconds of a run of the decode plan, tokens per second, and with
/// --profile where the time goes. --prompt N: a run is N tokens of each sequence, with the logits of the last ones. Several runs are in flight, so that the
/// device always has the next one; `alone`: a run that is waited for. Logits stay on the device unless --readback is given, which prints a digest of
/// them, too. --ask: it measures for each line `CACHED RUNS` that it reads, so that a script can measure by turns. --calibration FOLDER: also the time
/// alone that the figures of isotope-info calibrate predict. --one-workgroup: a step that is one dispatch has one workgroup, as tests have it.
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include "measure.hpp"
#include "predicted.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {
namespace iso = isotope;
using target = iso::selected;

using bench::seconds;

int fail(const iso::failure& f) { return bench::fail("bench_decode", f); }

/// Tokens of each sequence.
struct decode_batch {
  std::vector<std::int32_t> tokens, sequence, position, rows;
  template <class Give> void each_input(const Give& give) const {
    give(std::string_view("tokens"), std::span<const std::int32_t>(tokens));
    give(std::string_view("sequence"), std::span<const std::int32_t>(sequence));
    give(std::string_view("position"), std::span<const std::int32_t>(position));
    if (!rows.empty()) give(std::string_view("rows"), std::span<const std::int32_t>(rows));
  }
};

/// Sets an option that only devices of one backend have.
template <class Diagnostics> void option_of_device(std::string_view word, Diagnostics& d) {
  if constexpr (requires { d.step_workgroups; }) {
    if (word == "--no-whole-step") d.step_workgroups = 0;
    if (word == "--one-workgroup") d.step_workgroups = 1;
  }
  if constexpr (requires { d.no_early_start; }) {
    if (word == "--no-early-start") d.no_early_start = true;
    if (word == "--no-joins") d.no_joins = true;
    if (word == "--no-halves") d.no_halves = true;
    if (word == "--no-whole-step") d.no_whole_step = true;
    if (word == "--no-row-norms") d.no_row_norms = true;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4)
    return std::fprintf(
               stderr,
               "usage: bench_decode SIZE SLOTS CACHED [RUNS] [--prompt N] [--weights FORMAT] [--a8] [--batch-invariant] "
               "[--threads N] [--ask] [--profile] [--no-early-start] [--no-joins] [--no-halves] [--no-whole-step] [--no-row-norms] "
               "[--one-workgroup] [--readback] "
               "[--calibration FOLDER]\n"),
           2;
  iso::model::gpt size;
  bool known = false;
  for (const auto& [name, g] : iso::model::gpt_sizes)
    if (name == argv[1]) size = g, known = true;
  if (!known) return std::fprintf(stderr, "bench_decode: no size '%s'\n", argv[1]), 2;
  const int slots = std::atoi(argv[2]);
  int cached = std::atoi(argv[3]);
  if (slots < 1 || cached < 0 || cached >= size.context)
    return std::fprintf(stderr, "bench_decode: %s\n", "SLOTS must be positive, and CACHED below the context"), 2;
  int runs = 200, prompt = 0;
  bool profiled = false, readback = false, a8 = false, invariant = false, asks = false;
  iso::weight_storage stored = nullptr;
  std::string calibration;
  auto options = bench::options_of_environment<typename iso::device<target>::options>();
  for (int i = 4; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--profile") profiled = true;
    else if (word == "--readback") readback = true;
    else if (word == "--a8") a8 = true;
    else if (word == "--ask") asks = true;
    else if (word == "--batch-invariant") invariant = true;
    else if (word == "--calibration" && i + 1 < argc) calibration = argv[++i];
    else if (word == "--prompt" && i + 1 < argc) prompt = std::atoi(argv[++i]);
    else if (word == "--threads" && i + 1 < argc) bench::use_threads(std::atoi(argv[++i]), options);
    else if (word == "--weights" && i + 1 < argc) stored = iso::weights::named(argv[++i]);
    else if (word[0] != '-') runs = std::max(1, std::atoi(argv[i]));
    option_of_device(word, options.diagnose);
  }
  if (prompt < 0 || cached + prompt > size.context)
    return std::fprintf(stderr, "bench_decode: --prompt must not be negative, and not lead beyond the context\n"), 2;
  options.diagnose.no_readback = !readback;

  const int each = prompt > 0 ? prompt : 1;
  auto plan = iso::plan_inference<target>(iso::model::gpt_cached_logits_of{size, slots, slots * each, prompt > 0 ? slots : 0}, 0, true,
                                          false, stored, nullptr, invariant, a8);
  if (!plan) return fail(plan.error());
  auto device = iso::device<target>::open(options);
  if (!device) return fail(device.error());
  auto session = device->load(*std::move(plan));
  if (!session) return fail(session.error());
  session->initialize(1);

  const auto measure = [&] {
    decode_batch batch;
    for (int k = 0; k < slots; ++k) {
      for (int t = 0; t < each; ++t) {
        batch.tokens.push_back(std::int32_t(iso::philox(1, std::uint64_t(k), std::uint32_t(t), 0)[0] % std::uint32_t(size.vocab)));
        batch.sequence.push_back(k);
        batch.position.push_back(cached + t);
      }
      if (prompt > 0) batch.rows.push_back((k + 1) * each - 1);
    }
    std::vector<double> times;
    const double processor = bench::processor_seconds();
    constexpr int pieces = 5;
    for (int piece = 0; piece <= pieces; ++piece) {  // the first one warms up
      iso::pending_step last;
      const double began = seconds();
      for (int i = 0; i < runs; ++i) last = session->submit(batch, {});
      static_cast<void>(session->collect(last));
      if (piece > 0) times.push_back((seconds() - began) / runs);
    }
    std::vector<double> alone;  // from the start of a run to its end
    for (int i = 0; i < runs; ++i) {
      const double began = seconds();
      static_cast<void>(session->collect(session->submit(batch, {})));
      alone.push_back(seconds() - began);
    }
    const double processor_msec = 1e3 * (bench::processor_seconds() - processor) / (runs * (pieces + 2));
    std::sort(times.begin(), times.end());
    const double usec = 1e6 * times[pieces / 2];
    std::printf("%s %s %s B=%d, %d cached: %.1f us/run (least %.1f; alone %.1f), %.0f tokens/s, %zu launches, %.3f ms of processor time\n",
                std::string(target::backend::name).c_str(), std::string(target::precision::name).c_str(), argv[1], slots, cached, usec,
                1e6 * times[0], 1e6 * bench::median(alone), 1e6 * slots * each / usec, session->launches().size(), processor_msec);
    if (!calibration.empty())
      bench::compare_with_prediction(calibration, device->info(), session->plan(),
                                     {.launches = std::int64_t(session->launches().size()), .cached = double(cached + each) / size.context},
                                     bench::median(alone));
    std::fflush(stdout);
  };
  if (!asks) measure();
  while (asks && std::scanf("%d %d", &cached, &runs) == 2)
    if (cached >= 0 && cached + each <= size.context && runs > 0) measure();
  if (auto r = session->status(); !r) return fail(r.error());
  if (readback) {
    using storage = typename target::precision::storage;
    auto logits = session->template output<storage>("output");
    if (!logits) return fail(logits.error());
    std::uint64_t digest = 14695981039346656037u;  // FNV-1a
    for (const std::byte b : std::as_bytes(*logits)) digest = (digest ^ std::uint64_t(b)) * 1099511628211u;
    std::printf("digest of the logits: %016llx\n", static_cast<unsigned long long>(digest));
  }
  if (!profiled) return 0;
  auto r = bench::profile(*session);
  return r ? 0 : fail(r.error());
}
