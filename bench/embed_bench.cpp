/// bench_embed MODEL [THREADS]: a sentence embedding model on the backend of this build. Milliseconds from nothing to the vector of one sentence; sentences per
/// second by the clock and by the processor time of all threads, for batches of sentences of equal lengths with random ids; and where the time of a run goes.
#include <isotope/generate/embedder.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include "step_text.hpp"

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
using embedder = iso::embedder<iso::selected>;

double cpu_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }
double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
int fail(const iso::failure& f) { return std::fprintf(stderr, "bench_embed: %s\n", f.line().c_str()), 1; }

/// The best of the runs of about 2 seconds.
struct rate {
  double wall = 0, cpu = 0;  // sentences per second
};
rate rate_of(embedder& e, int sentences, int tokens) {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> starts{0};
  for (int b = 0; b < sentences; ++b) {
    for (int s = 0; s < tokens; ++s) ids.push_back(std::int32_t(1000 + (b * 7919 + s * 104729) % 20000));
    starts.push_back(ids.size());
  }
  std::vector<float> rows(std::size_t(sentences) * e.width());
  rate best;
  for (double end = seconds() + 2; seconds() < end;) {
    const double wall = seconds(), cpu = cpu_seconds();
    int n = 0;
    for (; seconds() - wall < 0.1; n += sentences)
      if (auto r = e.embed_ids(ids, starts, rows); !r) std::exit(fail(r.error()));
    best.wall = std::max(best.wall, n / (seconds() - wall));
    best.cpu = std::max(best.cpu, n / (cpu_seconds() - cpu));
  }
  return best;
}

/// Means of the steps of a run of the first plan, by op and shapes, the slowest first.
void profile(embedder& e) {
  constexpr int runs = 20;
  struct row {
    double usec = 0;
    int times = 0;
  };
  std::map<std::string, row> rows;
  auto& s = e.loaded();
  const auto& plan = s.plan();
  for (int i = 0; i < runs; ++i) {
    double before = seconds();
    static_cast<void>(s.observe(
        {},
        [&](std::size_t k) {
          const double now = seconds();
          auto& r = rows[step_text(plan, k)];
          r.usec += 1e6 * (now - before);
          ++r.times;
          before = seconds();
        },
        iso::phase_always));
  }
  double all = 0;
  std::vector<std::pair<std::string, row>> sorted(rows.begin(), rows.end());
  for (const auto& [name, r] : sorted) all += r.usec;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.usec > b.second.usec; });
  std::printf("steps, %.3f ms in all:\n", all / runs / 1000);
  for (const auto& [name, r] : sorted)
    std::printf("  %8.1f us %5.1f %%  %3d times  %s\n", r.usec / runs, 100 * r.usec / all, r.times / runs, name.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return std::fprintf(stderr, "usage: bench_embed MODEL [THREADS]\n"), 2;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
  iso::device_options o;
  o.threads = threads;
  const auto device = iso::device<iso::selected>::open(iso::options_for<iso::selected_backend>(o));
  if (!device) return fail(device.error());
  const std::vector<std::string> one{"A cat sleeps on the sofa."};
  for (int i = 0; i < 3; ++i) {
    const double begin = seconds(), cpu = cpu_seconds();
    auto e = embedder::open(*device, argv[1]);
    if (!e) return fail(e.error());
    const double opened = seconds(), opened_cpu = cpu_seconds();
    if (auto r = e->embed(one); !r) return fail(r.error());
    std::printf("open %.1f ms, first sentence %.1f ms; of processors %.1f, %.1f ms\n", 1e3 * (opened - begin), 1e3 * (seconds() - opened),
                1e3 * (opened_cpu - cpu), 1e3 * (cpu_seconds() - opened_cpu));
  }
  constexpr std::pair<int, int> shapes[] = {{1, 16}, {1, 64}, {1, 128}, {8, 64}, {32, 128}};
  for (const auto& [sentences, tokens] : shapes) {
    iso::embedder_options exact;
    exact.tokens = std::max(512, sentences * tokens);
    exact.buckets = {sentences * tokens};
    auto e = embedder::open(*device, argv[1], exact);
    if (!e) return fail(e.error());
    const rate r = rate_of(*e, sentences, tokens);
    std::printf("%d x %d: %.1f sentences/s, %.1f by processor time\n", sentences, tokens, r.wall, r.cpu);
    if (tokens != 128) profile(*e);
  }
}
