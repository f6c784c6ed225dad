/// bench_encode SIZE SEQUENCES TOKENS [RUNS] [--weights FORMAT] [--a8] [--threads N] [--profile] [--any-order] [--no-early-start] [--no-encoder] [--no-together]
/// [--no-direct] [--variant NAME] [--calibration FOLDER]: a BERT with random weights embeds SEQUENCES texts of TOKENS tokens in one run, on the backend of this build. RUNS (20) are in
/// flight together, fewer where they take more than a second, so that the device always has the next one; `alone`: from ids in the caller's memory to
/// vectors in the caller's memory, a run at a time. The digest of the first vector does not depend on SEQUENCES, but with --any-order: plans are not
/// `batch_invariant`, and few rows have launches of their own, without --no-encoder, or a launch for each layer with --no-together; --no-direct: inputs and outputs are copied; --variant: of kernels that
/// have one whose name begins so, such as encode_24; --profile: where the time goes. --calibration FOLDER: also the time alone that the figures of
/// isotope-info calibrate predict.
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

int fail(const iso::failure& f) { return bench::fail("bench_encode", f); }

/// Texts of equal length with random ids.
struct texts {
  std::vector<std::int32_t> tokens, position, starts{0};
  template <class Give> void each_input(const Give& give) const {
    give(std::string_view("tokens"), std::span<const std::int32_t>(tokens));
    give(std::string_view("position"), std::span<const std::int32_t>(position));
    give(std::string_view("starts"), std::span<const std::int32_t>(starts));
  }
};

/// Calls f() until about 0.3 seconds have passed, at least 3 times, and returns the times of the calls in seconds, sorted.
template <class F> std::vector<double> times_of(const F& f) {
  std::vector<double> all;
  for (const double end = seconds() + 0.3; all.size() < 3 || seconds() < end;) {
    const double began = seconds();
    f();
    all.push_back(seconds() - began);
  }
  std::sort(all.begin(), all.end());
  return all;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 4)
    return std::fprintf(stderr,
                        "usage: bench_encode SIZE SEQUENCES TOKENS [RUNS] [--weights FORMAT] [--a8] [--threads N] [--profile] "
                        "[--any-order] [--no-early-start] [--no-encoder] [--no-together] [--no-direct] [--variant NAME] "
                        "[--calibration FOLDER]\n"),
           2;
  iso::model::bert size;
  bool known = false;
  for (const auto& [name, b] : iso::model::bert_sizes)
    if (name == argv[1]) size = b, known = true;
  if (!known) return std::fprintf(stderr, "bench_encode: no size '%s'\n", argv[1]), 2;
  const int sequences = std::atoi(argv[2]), tokens = std::atoi(argv[3]);
  if (sequences < 1 || tokens < 1 || tokens > size.context)
    return std::fprintf(stderr, "bench_encode: %s\n", "SEQUENCES must be positive, and TOKENS from 1 to the context"), 2;
  int runs = 20;
  bool profiled = false, any_order = false, a8 = false;
  iso::weight_storage stored = nullptr;
  std::string calibration;
  auto options = bench::options_of_environment<typename iso::device<target>::options>();
  for (int i = 4; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--profile") profiled = true;
    else if (word == "--any-order") any_order = true;
    else if (word == "--a8") a8 = true;
    else if (word == "--calibration" && i + 1 < argc) calibration = argv[++i];
    else if (word == "--threads" && i + 1 < argc) bench::use_threads(std::atoi(argv[++i]), options);
    else if (word == "--weights" && i + 1 < argc) stored = iso::weights::named(argv[++i]);
    else if (word[0] != '-' && std::string_view(argv[i - 1]) != "--variant") runs = std::max(1, std::atoi(argv[i]));
    [word, next = i + 1 < argc ? argv[i + 1] : ""](auto& o) {
      if (word == "--variant") o.diagnose.variant = next;
      if constexpr (requires { o.diagnose.no_early_start; })
        if (word == "--no-early-start") o.diagnose.no_early_start = true;
      if constexpr (requires { o.diagnose.no_encoder; })
        if (word == "--no-encoder") o.diagnose.no_encoder = true;
      if constexpr (requires { o.diagnose.no_together; })
        if (word == "--no-together") o.diagnose.no_together = true;
      if constexpr (requires { o.diagnose.no_direct; })
        if (word == "--no-direct") o.diagnose.no_direct = true;
    }(options);
  }

  auto plan = iso::plan_inference<target>(iso::model::bert_embeddings_of{size, sequences * tokens, sequences}, 0, true, false, stored,
                                          nullptr, !any_order, a8, {}, true);  // packs weights, as an embedder does
  if (!plan) return fail(plan.error());
  auto device = iso::device<target>::open(options);
  if (!device) return fail(device.error());
  auto session = device->load(*std::move(plan));
  if (!session) return fail(session.error());
  session->initialize(1);

  texts batch;
  for (int b = 0; b < sequences; ++b) {
    for (int s = 0; s < tokens; ++s) {
      batch.tokens.push_back(std::int32_t(iso::philox(1, std::uint64_t(b), std::uint32_t(s), 0)[0] % std::uint32_t(size.vocab)));
      batch.position.push_back(s);
    }
    batch.starts.push_back(std::int32_t(batch.tokens.size()));
  }
  std::vector<double> times;
  constexpr int pieces = 5;
  for (int piece = 0; piece <= pieces; ++piece) {  // the first one warms up
    iso::pending_step last;
    const double began = seconds();
    int submitted = 0;
    for (; submitted < runs || seconds() - began < 0.1; ++submitted) {
      last = session->submit(batch, {});
      if (seconds() - began > 1) break;  // where runs take long, and on a processor, whose submissions are whole runs
    }
    static_cast<void>(session->collect(last));
    runs = std::min(runs, submitted + 1);
    if (piece == 0) continue;
    const double start = seconds();
    for (int i = 0; i < runs; ++i) last = session->submit(batch, {});
    static_cast<void>(session->collect(last));
    times.push_back((seconds() - start) / runs);
    if (auto r = session->status(); !r) return fail(r.error());
  }
  std::vector<float> vectors(std::size_t(sequences) * std::size_t(size.width));
  using storage = typename target::precision::storage;
  const auto alone = times_of([&] {
    static_cast<void>(session->put(batch));
    static_cast<void>(session->run_plan(0));
    if (const auto out = session->template output<storage>("output"); out)
      std::transform(out->begin(), out->end(), vectors.begin(), [](storage x) { return float(x); });
  });
  if (auto r = session->status(); !r) return fail(r.error());
  std::sort(times.begin(), times.end());
  const double usec = 1e6 * times[pieces / 2];
  std::uint64_t digest = 14695981039346656037u;  // FNV-1a
  for (const std::byte b : std::as_bytes(std::span(vectors).first(std::size_t(size.width))))
    digest = (digest ^ std::uint64_t(b)) * 1099511628211u;
  std::printf(
      "%s %s %s %d x %d%s: %.1f us/run (least %.1f), %.0f sentences/s; alone %.1f us (least %.1f), %.0f sentences/s; %zu launches; "
      "digest of the first vector %016llx\n",
      std::string(target::backend::name).c_str(), std::string(target::precision::name).c_str(), argv[1], sequences, tokens,
      any_order ? " in any order" : "", usec, 1e6 * times[0], 1e6 * sequences / usec, 1e6 * alone[alone.size() / 2], 1e6 * alone[0],
      sequences / alone[alone.size() / 2], session->launches().size(), static_cast<unsigned long long>(digest));
  if (!calibration.empty())
    bench::compare_with_prediction(calibration, device->info(), session->plan(), {.launches = std::int64_t(session->launches().size())},
                                   alone[alone.size() / 2]);
  if (!profiled) return 0;
  auto r = bench::profile(*session);
  return r ? 0 : fail(r.error());
}
