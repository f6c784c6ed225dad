/// bench_embed MODEL [--threads N] [--weights FORMAT] [--a8] [--any-order] [--tokens N] [--ask]: a sentence embedding model on the backend of this build. Milliseconds
/// from nothing to the vector of one sentence; sentences per second by the clock and by the processor time of all threads, for batches of
/// sentences of equal lengths with random ids; and where the time of a run goes; --tokens N: in runs of at most N tokens, not of the whole
/// batch. --any-order: plans are not batch invariant. With --ask instead: for each line `SENTENCES TOKENS SECONDS` that it reads, one with the two rates, so that a script can measure by turns.
#include <isotope/generate/embedder.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include "measure.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace iso = isotope;
using embedder = iso::embedder<iso::selected>;
using bench::seconds;

int fail(const iso::failure& f) { return bench::fail("bench_embed", f); }

/// Sentences per second, measured for about this many seconds.
bench::rate rate_of(embedder& e, int sentences, int tokens, double span) {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> starts{0};
  for (int b = 0; b < sentences; ++b) {
    for (int s = 0; s < tokens; ++s) ids.push_back(std::int32_t(1000 + (b * 7919 + s * 104729) % 20000));
    starts.push_back(ids.size());
  }
  std::vector<float> rows(std::size_t(sentences) * e.width());
  bench::rate r = bench::rate_of(span, [&] {
    if (auto done = e.embed_ids(ids, starts, rows); !done) std::exit(fail(done.error()));
  });
  r.wall *= sentences, r.cpu *= sentences;
  return r;
}

/// Opens the model with a plan for these sizes alone, or for runs of at most o.tokens.
iso::result<embedder> open_for(const iso::device<iso::selected>& on, const std::string& model, iso::embedder_options o, int sentences,
                               int tokens) {
  const int run = o.tokens > 0 ? std::min(sentences, std::max(1, o.tokens / tokens)) * tokens : sentences * tokens;
  o.tokens = std::max(512, run);
  o.buckets = {run};
  o.finer = false;
  return embedder::open(on, model, o);
}

int ask(const iso::device<iso::selected>& on, const std::string& model, const iso::embedder_options& o) {
  std::map<std::pair<int, int>, embedder> opened;
  int sentences = 0, tokens = 0;
  double span = 0;
  while (std::scanf("%d %d %lf", &sentences, &tokens, &span) == 3) {
    auto at = opened.find({sentences, tokens});
    if (at == opened.end()) {
      auto e = open_for(on, model, o, sentences, tokens);
      if (!e) return fail(e.error());
      at = opened.emplace(std::pair(sentences, tokens), *std::move(e)).first;
    }
    const bench::rate r = rate_of(at->second, sentences, tokens, span);
    std::printf("%.6g %.6g\n", r.wall, r.cpu);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: bench_embed MODEL [--threads N] [--weights FORMAT] [--a8] [--any-order] [--tokens N] [--ask]\n"), 2;
  iso::device_options threads;
  iso::embedder_options o;
  bool asks = false;
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--ask") asks = true;
    else if (word == "--a8") o.a8 = true;
    else if (word == "--any-order") o.batch_invariant = false;
    else if (word == "--threads" && i + 1 < argc) threads.threads = std::atoi(argv[++i]);
    else if (word == "--tokens" && i + 1 < argc) o.tokens = std::atoi(argv[++i]);
    else if (word == "--weights" && i + 1 < argc) o.stored = iso::weights::named(argv[++i]);
    else return std::fprintf(stderr, "bench_embed: no flag '%s'\n", argv[i]), 2;
  }
  const auto device = iso::device<iso::selected>::open(iso::options_for<iso::selected_backend>(threads));
  if (!device) return fail(device.error());
  if (asks) return ask(*device, argv[1], o);
  const std::vector<std::string> one{"A cat sleeps on the sofa."};
  for (int i = 0; i < 3; ++i) {
    const double begin = seconds(), cpu = bench::processor_seconds();
    auto e = embedder::open(*device, argv[1], o);
    if (!e) return fail(e.error());
    const double opened = seconds(), opened_cpu = bench::processor_seconds();
    if (auto r = e->embed(one); !r) return fail(r.error());
    std::printf("open %.1f ms, first sentence %.1f ms; of processors %.1f, %.1f ms\n", 1e3 * (opened - begin), 1e3 * (seconds() - opened),
                1e3 * (opened_cpu - cpu), 1e3 * (bench::processor_seconds() - opened_cpu));
  }
  constexpr std::pair<int, int> shapes[] = {{1, 16}, {1, 64}, {1, 128}, {8, 64}, {32, 128}};
  for (const auto& [sentences, tokens] : shapes) {
    auto e = open_for(*device, argv[1], o, sentences, tokens);
    if (!e) return fail(e.error());
    const bench::rate r = rate_of(*e, sentences, tokens, 2);
    std::printf("%d x %d: %.1f sentences/s, %.1f by processor time\n", sentences, tokens, r.wall, r.cpu);
    if (tokens == 128) continue;
    if (auto done = bench::profile(e->loaded()); !done) return fail(done.error());
  }
}
