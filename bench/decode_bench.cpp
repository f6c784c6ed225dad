/// bench_decode SIZE SLOTS CACHED [RUNS] [--weights FORMAT] [--a8] [--threads N] [--profile] [--no-early-start] [--no-joins] [--readback]: one token of each of SLOTS sequences of a GPT, behind CACHED
/// tokens, on the backend of this build: microseconds of a run of the decode plan, tokens per second, and with --profile the time of each kernel alone. Several
/// runs are in flight, so that the device always has the next one; `alone`: a run that is waited for. Logits stay on the device unless --readback is given, which prints a digest of them, too.
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {
namespace iso = isotope;
using target = iso::selected;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
int fail(const iso::failure& f) { return std::fprintf(stderr, "bench_decode: %s\n", f.line().c_str()), 1; }

/// One token of each sequence.
struct decode_batch {
  std::vector<std::int32_t> tokens, sequence, position;
  template <class Give> void each_input(const Give& give) const {
    give(std::string_view("tokens"), std::span<const std::int32_t>(tokens));
    give(std::string_view("sequence"), std::span<const std::int32_t>(sequence));
    give(std::string_view("position"), std::span<const std::int32_t>(position));
  }
};

/// Sets an option that only devices of cuda have.
template <class Diagnostics> void cuda_option(std::string_view word, Diagnostics& d) {
  if constexpr (requires { d.no_early_start; }) {
    if (word == "--no-early-start") d.no_early_start = true;
    if (word == "--no-joins") d.no_joins = true;
  }
}

/// Sets the number of threads where the device has any.
template <class Options> void use_threads([[maybe_unused]] int threads, [[maybe_unused]] Options& o) {
  if constexpr (requires { o.threads; }) o.threads = threads;
}

template <class Session> int profile(Session& s) {
  if constexpr (requires { s.profile(iso::step_scalars{}); }) {
    static_cast<void>(s.profile({}));
    auto timed = s.profile({});
    if (!timed) return fail(timed.error());
    std::map<std::string, std::pair<double, int>> rows;
    double total = 0;
    for (const auto& t : timed->launches) {
      auto& row = rows[std::string(t.code) + " (" + std::string(t.set) + (t.reason.empty() ? "" : ": " + std::string(t.reason)) + ")"];
      row.first += t.usec, ++row.second, total += t.usec;
    }
    std::vector<std::pair<std::string, std::pair<double, int>>> sorted(rows.begin(), rows.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
    std::printf("kernels one after the other, %.1f us:\n", total);
    for (const auto& [name, row] : sorted)
      std::printf("  %8.1f us  %4d launches  %6.2f us each  %s\n", row.first, row.second, row.first / row.second, name.c_str());
  }
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 4)
    return std::fprintf(stderr,
                        "usage: bench_decode SIZE SLOTS CACHED [RUNS] [--weights FORMAT] [--a8] [--threads N] [--profile] "
                        "[--no-early-start] [--no-joins] "
                        "[--readback]\n"),
           2;
  iso::model::gpt size;
  bool known = false;
  for (const auto& [name, g] : iso::model::gpt_sizes)
    if (name == argv[1]) size = g, known = true;
  if (!known) return std::fprintf(stderr, "bench_decode: no size '%s'\n", argv[1]), 2;
  const int slots = std::atoi(argv[2]), cached = std::atoi(argv[3]);
  if (slots < 1 || cached < 0 || cached >= size.context)
    return std::fprintf(stderr, "bench_decode: %s\n", "SLOTS must be positive, and CACHED below the context"), 2;
  int runs = 200;
  bool profiled = false, readback = false, a8 = false;
  iso::weight_storage stored = nullptr;
  typename iso::device<target>::options options{.cache = std::getenv("ISOTOPE_CACHE") != nullptr ? std::getenv("ISOTOPE_CACHE") : ""};
  for (int i = 4; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--profile") profiled = true;
    else if (word == "--readback") readback = true;
    else if (word == "--a8") a8 = true;
    else if (word == "--threads" && i + 1 < argc) use_threads(std::atoi(argv[++i]), options);
    else if (word == "--weights" && i + 1 < argc) stored = iso::weights::named(argv[++i]);
    else if (word[0] != '-') runs = std::max(1, std::atoi(argv[i]));
    cuda_option(word, options.diagnose);
  }
  options.diagnose.no_readback = !readback;

  auto plan =
      iso::plan_inference<target>(iso::model::gpt_cached_logits_of{size, slots, slots, 0}, 0, true, false, stored, nullptr, false, a8);
  if (!plan) return fail(plan.error());
  auto device = iso::device<target>::open(options);
  if (!device) return fail(device.error());
  auto session = device->load(*std::move(plan));
  if (!session) return fail(session.error());
  session->initialize(1);

  decode_batch batch;
  for (int k = 0; k < slots; ++k) {
    batch.tokens.push_back(std::int32_t(iso::philox(1, std::uint64_t(k), 0, 0)[0] % std::uint32_t(size.vocab)));
    batch.sequence.push_back(k);
    batch.position.push_back(cached);
  }
  std::vector<double> times;
  const auto processor = std::clock();
  constexpr int pieces = 5;
  for (int piece = 0; piece <= pieces; ++piece) {  // the first one warms up
    iso::pending_step last;
    const double began = seconds();
    for (int i = 0; i < runs; ++i) last = session->submit(batch, {});
    static_cast<void>(session->collect(last));
    if (piece > 0) times.push_back((seconds() - began) / runs);
    if (auto r = session->status(); !r) return fail(r.error());
  }
  std::vector<double> alone;  // from the start of a run to its end
  for (int i = 0; i < runs; ++i) {
    const double began = seconds();
    static_cast<void>(session->collect(session->submit(batch, {})));
    alone.push_back(seconds() - began);
  }
  const double processor_msec = 1e3 * double(std::clock() - processor) / CLOCKS_PER_SEC / (runs * (pieces + 2));
  std::sort(times.begin(), times.end());
  std::sort(alone.begin(), alone.end());
  const double usec = 1e6 * times[pieces / 2];
  std::printf("%s %s %s B=%d, %d cached: %.1f us/run (least %.1f; alone %.1f), %.0f tokens/s, %zu launches, %.3f ms of processor time\n",
              std::string(target::backend::name).c_str(), std::string(target::precision::name).c_str(), argv[1], slots, cached, usec,
              1e6 * times[0], 1e6 * alone[alone.size() / 2], 1e6 * slots / usec, session->launches().size(), processor_msec);
  if (readback) {
    using storage = typename target::precision::storage;
    auto logits = session->template output<storage>("output");
    if (!logits) return fail(logits.error());
    std::uint64_t digest = 14695981039346656037u;  // FNV-1a
    for (const std::byte b : std::as_bytes(*logits)) digest = (digest ^ std::uint64_t(b)) * 1099511628211u;
    std::printf("digest of the logits: %016llx\n", static_cast<unsigned long long>(digest));
  }
  return profiled ? profile(*session) : 0;
}
