/// bench_variants [--op matmul|attention|cached] [--rows N] [--random N] [--threads N] [--calibrate] [--seconds S] [--no-library] [--measure] [--loads N] [--step] [--no-gpt2] [--only TEXT] [--all]:
/// whether choose_kernel takes the fastest variant. The products of a training step of GPT-2 124M of N rows (4,096), then N products of random sizes (50); with `--op attention` its attention of up to 8 N tokens, the gradient and
/// attention to 512 cached positions; with `--op cached` attention to short and long caches. Each runs as the library chooses, then with each variant that fits, and the line says how much longer the chosen one
/// takes than the fastest. Times are of a plan with this step alone, of all variants in turn: at least 16 rounds, and until 2 S seconds (S: 0.01) for each variant are over; those that are far slower than the fastest leave early. All run in the same memory. On a device with a clock of its own
/// a round is as in the library's timing of short variants (docs/AUTOTUNE.md), by 16 recordings in turn, and the median of the rounds counts; a gradient runs without the forward step. On a processor a round is of runs for 0.5 ms, by its clock of the thread if there is one,
/// and the least counts, since other work of the host makes any of them longer; --threads: of a processor. --loads: in so many sessions, with other places in memory; the least counts.
/// The fastest of several in one measurement may be one that was lucky: where the chosen one takes more than 1.015 times as long, these two alone and the chosen one once more run in turn again, in four times as many rounds, and in as many again, up to three times, while the chosen one is not within 1 % of itself; these times count,
/// and the line ends with the first ratio and with that of the chosen one to itself.
/// --calibrate: a processor chooses by its rates, which are measured first. --measure: the library times variants when it loads a plan, and takes the fastest. --step: first, what loading a training step of GPT-2 124M of N rows and the step itself take, by estimate and
/// with timed variants. --no-library: on cuda, without cuBLASLt, which takes products that have no epilogue. --no-gpt2: without its products. --only: steps whose line begins with or contains TEXT. --all: every time of every variant.
#include <isotope/calibrate/measure.hpp>
#include <isotope/calibrate/use_rates.hpp>

#include "variant_runs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {
namespace iso = isotope;
using target = iso::selected;
using options = typename target::backend::options;
using bench::attention_step, bench::cached_step, bench::contender, bench::on_host, bench::problem, bench::product, bench::tile_of,
    bench::variants;

/// Sets how variants are chosen, where a backend tunes.
template <class Options> void tune([[maybe_unused]] Options& o, [[maybe_unused]] iso::tuning how) {
  if constexpr (requires { o.autotune; }) o.autotune = how;
}

/// Prints what a device spent to time variants.
template <class Device> void print_spent([[maybe_unused]] const Device& d) {
  [[maybe_unused]] const auto print = [](const auto& c) {
    const auto t = c.spent();
    if (t.choices > 0)
      std::printf("  %d choices among %d variants: preparing %.3f s, waiting for the compiler %.3f, comparing results %.3f, timing %.3f\n",
                  t.choices, t.variants, t.preparing, t.compiling, t.comparing, t.timing);
  };
  if constexpr (requires { d.shared_functions()->variants; }) print(*d.shared_functions()->variants);
  if constexpr (requires { d.shared_pipelines()->variants; }) {
    print(d.shared_pipelines()->variants);
    const auto c = d.shared_pipelines()->counts();
    std::printf("  %zu pipelines, %zu of them from a cache, in %.3f s of all threads together, the longest %.3f s\n", c.made, c.from_cache,
                c.seconds, c.longest);
  }
}

/// Measures a device whose kernels choose by its rates.
template <class Device> iso::result<void> calibrate([[maybe_unused]] const Device& device) {
  if constexpr (requires(const iso::calibration& c) { iso::use_rates(device, c); }) {
    const auto figures = iso::measure_device<target>(device, bench::seconds, "");
    if (!figures) return figures.error();
    iso::use_rates(device, *figures);
    for (const auto q : {iso::quantity::product_large, iso::quantity::stream_small, iso::quantity::barrier})
      std::printf("%s %.4g\n", std::string(name_of(q)).c_str(), (*figures)[q].value);
  }
  return {};
}

/// Loads a training step with these options and times it.
iso::result<void> run_step(const options& o, std::int64_t rows, double span, const char* what) {
  constexpr iso::model::gpt gpt2{.layers = 12, .heads = 12, .width = 768, .vocab = 50257, .context = 1024};
  auto plan = iso::plan_training<target>(iso::model::gpt_loss_of{gpt2, int(std::max<std::int64_t>(rows / 1024, 1)), 1024});
  if (!plan) return std::move(plan).error();
  auto device = iso::device<target>::open(o);
  if (!device) return device.error();
  const double start = bench::seconds();
  auto s = device->load(*std::move(plan));
  if (!s) return s.error();
  const double loading = bench::seconds() - start;
  for (const std::string& text : s->queue().messages()) std::printf("%s\n", text.c_str());
  s->initialize(1);
  double least = 1e9;
  for (const double end = bench::seconds() + 0.3 + 10 * span; bench::seconds() < end;) {
    const double began = bench::seconds();
    if (auto r = s->run_plan_times(0, 8); !r) return r;
    least = std::min(least, (bench::seconds() - began) / 8);
  }
  std::printf("training step of GPT-2 124M, %lld rows, %s: %.3f ms, loading took %.2f s\n", static_cast<long long>(rows), what, 1e3 * least,
              loading);
  print_spent(*device);
  return {};
}

constexpr double most = 1.03;           // times the fastest, which the chosen one may take
constexpr double doubtful = 1.015;      // above this it is measured again
constexpr double noise = 0.01;          // by which its times may differ then
constexpr const char* same = "itself";  // the chosen one once more

struct row {
  problem of;
  std::vector<variants> choices = {};
  std::map<std::string, double> seconds = {};  // by variant
};
/// Whether a row has this variant, and it fits.
bool has(const variants& choice, const std::string& name) {
  return std::any_of(choice.begin(), choice.end(), [&](const auto& v) { return v.unfit.empty() && tile_of(v.name) == name; });
}
}  // namespace

int main(int argc, char** argv) {
  std::int64_t rows = 4096;
  int random = 50, threads = 0;
  double span = 0.01;
  std::string_view op = "matmul", only;
  bool every = false, step = false, gpt2 = true, calibrates = false;
  int loads = 1;
  options o = bench::options_of_environment<options>();
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : "0"; };
    if (word == "--rows") rows = std::max(1, std::atoi(value()));
    else if (word == "--random") random = std::atoi(value());
    else if (word == "--threads") threads = std::atoi(value());
    else if (word == "--seconds") span = std::atof(value());
    else if (word == "--all") every = true;
    else if (word == "--op") op = value();
    else if (word == "--only") only = value();
    else if (word == "--step") step = true;
    else if (word == "--no-gpt2") gpt2 = false;
    else if (word == "--calibrate") calibrates = true;
    else if (word == "--loads") loads = std::max(1, std::atoi(value()));
    else if (word == "--measure") tune(o, iso::tuning::measure);
    else if (word != "--no-library") return std::fprintf(stderr, "bench_variants: no flag '%s'\n", argv[i]), 2;
    [word](auto& x) {
      if constexpr (requires { x.diagnose.no_library; })
        if (word == "--no-library") x.diagnose.no_library = true;
    }(o);
  }
  bench::use_threads(threads, o);
  if (step) {
    options level = o;
    using run = std::pair<iso::tuning, const char*>;
    for (const auto& [tuned, what] : {run(iso::tuning::off, "by estimate, the first of the process"), run(iso::tuning::off, "by estimate"),
                                      run(iso::tuning::measure, "timed"), run(iso::tuning::measure, "of the file")}) {
      tune(level, tuned);
      if (auto r = run_step(level, rows, span, what); !r) return bench::fail("bench_variants", r.error());
    }
  }
  std::vector<row> all;
  if (op == "attention") {
    for (const auto& [B, S] : bench::attention_sizes) {
      if (B * S > 8 * rows) continue;
      all.push_back({.of = {attention_step{B, S}}});
      all.push_back({.of = {attention_step{B, S, true}, int(all.size()) - 1}});
    }
    for (const int B : {1, 8, 64}) all.push_back({.of = {cached_step{B}}});
  } else if (op == "cached") {
    for (const auto& c : bench::cached_steps()) all.push_back({.of = {c}});
  } else {
    if (gpt2)
      for (const auto& p : bench::products_of_gpt2(rows)) all.push_back({.of = {p}});
    auto more = bench::random_products(random);
    if constexpr (on_host)  // the largest last, which take seconds
      std::sort(more.begin(), more.end(), [](const product& a, const product& b) { return a.M * a.N * a.K < b.M * b.N * b.K; });
    for (const auto& p : more) all.push_back({.of = {p}});
  }

  auto device = iso::device<target>::open(o);
  if (!device) return bench::fail("bench_variants", device.error());
  if (calibrates)
    if (auto r = calibrate(*device); !r) return bench::fail("bench_variants", r.error());
  double worst = 1, loading = 0;
  int above = 0, counted = 0;
  const auto sweep = [&](row& r) -> iso::result<void> {
    auto first = bench::load(*device, r.of);
    if (!first) return first.error();
    r.choices = (*first)->choices, loading += (*first)->loading;
    if (r.choices.empty()) return std::printf("%-28s no choice among variants\n", r.of.text().c_str()), iso::result<void>{};
    std::vector<std::string> asked;
    for (const variants& choice : r.choices)
      for (const auto& v : choice)
        if (v.unfit.empty() && std::find(asked.begin(), asked.end(), tile_of(v.name)) == asked.end()) asked.push_back(tile_of(v.name));
    std::vector<contender> contenders;
    for (int n = 0; n < loads; ++n) {
      auto p = *first;
      if (n > 0) {
        auto other = bench::load(*device, r.of);
        if (!other) return other.error();
        p = *std::move(other);
      }
      for (const std::string& name : asked) {
        auto runs = bench::runs::create(*device, p, name);
        if (!runs) return runs.error();
        contenders.push_back({name, *std::move(runs)});
      }
    }
    // Sets the times of the variants that are wanted.
    const auto measure = [&](const auto& wanted, int more, bool again = false) -> iso::result<void> {
      std::vector<contender*> some;
      for (contender& c : contenders)
        if (wanted(c.name)) some.push_back(&c), r.seconds.erase(c.name);
      if (auto t = bench::by_turns(some, 16 * more, 2 * span * more, again); !t) return t;
      for (const contender* c : some) {
        if (every && loads > 1) std::printf("  %9.2f us, %s by %s\n", 1e6 * c->seconds(), r.of.text().c_str(), c->name.c_str());
        if (const auto [at, fresh] = r.seconds.emplace(c->name, c->seconds()); !fresh) at->second = std::min(at->second, c->seconds());
      }
      return {};
    };
    if (auto t = measure([](const std::string&) { return true; }, 1); !t) return t;
    const row* before = r.of.before < 0 ? nullptr : &all[std::size_t(r.of.before)];
    for (const variants& choice : r.choices) {
      if (before != nullptr && std::find(before->choices.begin(), before->choices.end(), choice) != before->choices.end()) continue;
      const auto chosen = std::find_if(choice.begin(), choice.end(), [](const auto& v) { return v.chosen; });
      if (chosen == choice.end()) continue;
      const std::string mine = tile_of(chosen->name);
      std::string fastest = mine;
      const auto times = r.seconds;
      for (const auto& [name, seconds] : times)
        if (has(choice, name) && seconds < r.seconds.at(fastest)) fastest = name;
      const auto ratio = [&] { return r.seconds.at(mine) / r.seconds.at(fastest); };
      const double at_first = ratio();
      if (at_first > doubtful) {
        auto runs = bench::runs::create(*device, *first, mine);
        if (!runs) return runs.error();
        contenders.push_back({same, *std::move(runs)});
        const auto three = [&](const std::string& name) { return name == mine || name == fastest || name == same; };
        auto t = measure(three, 4);
        for (int more = 0; t && more < 3 && std::abs(r.seconds.at(same) / r.seconds.at(mine) - 1) > noise; ++more)
          t = measure(three, 4, true);
        contenders.pop_back();
        if (!t) return t;
      }
      const double own = r.seconds.at(mine), last = std::max(ratio(), 1.0);
      const auto count = std::count_if(choice.begin(), choice.end(), [](const auto& v) { return v.unfit.empty(); });
      std::printf("%-28s %9.2f us by %s (predicted %.2f), the fastest of %d %9.2f us by %s: %.3f", r.of.text().c_str(), 1e6 * own,
                  chosen->name.c_str(), 1e6 * chosen->seconds, int(count), 1e6 * own / last, fastest.c_str(), last);
      if (at_first > doubtful) std::printf(", at first %.3f, itself %.3f", at_first, r.seconds.at(same) / own);
      if (at_first > most || last > most) std::printf(", %s", last > most ? "confirmed" : "not confirmed");
      std::printf("\n");
      for (const auto& v : choice)
        if (const auto t = times.find(tile_of(v.name)); every && v.unfit.empty() && t != times.end())
          std::printf("  %9.2f us, predicted %9.2f, by %s\n", 1e6 * t->second, 1e6 * v.seconds, v.name.c_str());
      ++counted, above += last > most ? 1 : 0, worst = std::max(worst, last);
    }
    std::fflush(stdout);
    return {};
  };
  for (row& r : all)
    if (r.of.text().find(only) == std::string::npos) continue;
    else if (auto e = sweep(r); !e) return bench::fail("bench_variants", e.error());
  std::printf(
      "%d steps with a choice: the chosen variant takes at most %.3f times as long as the fastest, and more than 1.03 times in %d, "
      "confirmed; loading all plans took %.2f s\n",
      counted, worst, above, loading);
}
