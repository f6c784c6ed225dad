/// bench_variants [--op matmul|attention|cached] [--rows N] [--random N] [--threads N] [--calibrate] [--seconds S] [--no-library] [--measure] [--loads N] [--step] [--no-gpt2] [--all]:
/// whether choose_kernel takes the fastest variant. The products of a training step of GPT-2 124M of N rows (4,096), then N products of random sizes (50); with `--op attention` its attention of up to 8 N tokens, the gradient and
/// attention to 512 cached positions; with `--op cached` attention to short and long caches. Each runs as the library chooses, then with each variant that fits, and the line says how much longer the chosen one
/// takes than the fastest. Times are of runs of a plan with this step alone, of all variants in turn, for S seconds (0.05) each, after a warm-up: the least of rounds of up to 32 runs, since other work of the host makes any of them longer; of N loads
/// (1) with other places in memory, the least; of a gradient without the forward step, which runs in turn with it and has a line of its own. The fastest of several in one measurement may be one that was lucky: where the chosen one
/// takes more than 1.03 times as long, these two alone run in turn again, in four times as many rounds; these times count, and the line ends with the first ratio. --threads: of a processor.
/// --calibrate: a processor chooses by its rates, which are measured first. --measure: the library times variants when it loads a plan, and takes the fastest. --step: first, what loading a training step of GPT-2 124M of N rows and the step itself take, by estimate and
/// with timed variants. --no-library: on cuda, without cuBLASLt, which takes products that have no epilogue. --no-gpt2: without its products. --all: every time of every variant.
#include <isotope/calibrate/measure.hpp>
#include <isotope/calibrate/use_rates.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include "measure.hpp"
#include "rounds.hpp"
#include "variant_problems.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {
namespace iso = isotope;
using target = iso::selected;
using options = typename target::backend::options;
constexpr bool on_host = iso::device<target>::on_host;
using bench::attention_step, bench::cached_step, bench::product;

/// What is measured: `model` with the sizes, and, of a gradient, the row of the forward step alone.
struct problem {
  std::variant<product, attention_step, cached_step> model;
  int before = -1;
  std::string text() const {
    return std::visit([](const auto& m) { return m.text(); }, model);
  }
};

using variants = std::vector<iso::considered_variant>;
using session = typename iso::device<target>::session;

/// A problem that a device has loaded, and the times of its runs.
struct contender {
  session s;
  double loading = 0;
  std::vector<variants> choices = {};  // of each step that has one
  int times = 1;                       // runs of one measurement
  std::vector<double> seconds = {};
};
iso::result<double> timed(contender& c, int times) {
  const double began = bench::seconds();
  if (auto r = c.s.run_plan_times(0, times); !r) return r.error();
  return (bench::seconds() - began) / times;
}
iso::result<contender> load(const iso::device<target>& device, const problem& p) {
  auto plan = std::visit([](const auto& m) { return iso::plan_inference<target>(m); }, p.model);
  if (!plan) return std::move(plan).error();
  const double start = bench::seconds();
  auto loaded = device.load(*std::move(plan));
  if (!loaded) return std::move(loaded).error();
  contender c{*std::move(loaded), bench::seconds() - start};
  c.s.initialize(1);
  if (const auto* cached = std::get_if<cached_step>(&p.model)) {
    for (const char* label : {"sequence", "position"}) {
      auto in = c.s.template input<std::int32_t>(label);
      if (!in) return in.error();
      for (std::size_t k = 0; k < in->size(); ++k) (*in)[k] = std::int32_t(label[0] == 's' ? std::int64_t(k) : cached->filled - 1);
    }
  }
  for (const std::string& text : c.s.queue().messages()) std::printf("%s\n", text.c_str());
  for (const auto& l : c.s.launches(iso::phase_always))
    if (!l.considered.empty()) c.choices.push_back(l.considered);
  return c;
}
/// Times all in turn, so that a clock that changes and other work change it for all: a warm-up, then at least five rounds, and more for `span` seconds each, or
/// `more` times as many. Before a short measurement the plan runs untimed, since another one has left its clock and its caches; each round begins with another plan.
/// On a processor a measurement takes 0.5 ms, or one run, since other programs come at any time: the least of many short ones says more than few long ones.
iso::result<void> time(const std::vector<contender*>& all, double span, int more = 1) {
  if constexpr (on_host) {
    double longest = 0;
    for (contender* c : all) {
      auto first = timed(*c, 1);
      if (first && *first < span) first = timed(*c, 1);
      if (!first) return first.error();
      c->times = std::clamp(int(0.0005 / std::max(*first, 1e-7)), 1, 64), longest = std::max(longest, *first);
    }
    const int rounds = longest > 0.5 ? 2 : longest > 0.1 ? 4 : 9;
    auto t = bench::interleaved(all.size(), rounds, 2 * span * more * double(all.size()), [&](std::size_t k) -> iso::result<double> {
      if (all[k]->times > 1)
        if (auto before = timed(*all[k], 1); !before) return before.error();
      return timed(*all[k], all[k]->times);
    });
    if (!t) return t.error();
    for (std::size_t k = 0; k < all.size(); ++k) all[k]->seconds = std::move((*t)[k]);
    return {};
  }
  for (contender* c : all) {
    auto first = timed(*c, 1);
    if (first && *first < span) first = timed(*c, 1);  // the first run of a plan also makes what later ones find
    if (!first) return first.error();
    c->times = std::clamp(int(0.2 * span / std::max(*first, 1e-7)), 1, 32);
    c->seconds.clear();
  }
  constexpr double warm = 0.2;  // with 0.02 s, the same product took up to 3.7 times as long
  for (int part = 0; part < 2; ++part) {
    const double end = bench::seconds() + (part == 0 ? warm : 2 * span * more * double(all.size()));
    for (std::size_t round = 0; bench::seconds() < end || (part == 1 && round < 5 * std::size_t(more)); ++round)
      for (std::size_t k = 0; k < all.size(); ++k) {
        contender& c = *all[(k + round) % all.size()];
        auto t = timed(c, c.times);
        if (t && *t * c.times < span) t = timed(c, c.times);
        if (!t) return t.error();
        if (part == 1) c.seconds.push_back(*t);
      }
  }
  return {};
}

/// The name of a variant without the parts of K, which depend on the sizes.
std::string tile_of(const std::string& name) { return name.substr(0, name.find(", K in")); }

/// Asks a device for a variant. Backends whose kernels choose none have no such option.
template <class Options> void ask_for([[maybe_unused]] Options& o, [[maybe_unused]] const std::string& variant) {
  if constexpr (requires { o.diagnose.variant; }) o.diagnose.variant = variant;
}

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

constexpr double most = 1.03;  // times the fastest, which the chosen one may take

struct row {
  problem of;
  double usual = 0, forward = 0, loading = 0;  // seconds of a run as the library chooses, of the forward step of a gradient, and of loading
  std::vector<variants> choices = {};
  std::map<std::string, double> seconds = {};              // by variant
  std::map<std::string, std::vector<double>> rounds = {};  // of a processor, by variant
};
/// Whether a row has this variant, and it fits.
bool has(const variants& choice, const std::string& name) {
  return std::any_of(choice.begin(), choice.end(), [&](const auto& v) { return v.unfit.empty() && tile_of(v.name) == name; });
}
}  // namespace

int main(int argc, char** argv) {
  std::int64_t rows = 4096;
  int random = 50, threads = 0;
  double span = 0.05;
  std::string_view op = "matmul";
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

  double worst = 1, loading = 0;
  int above = 0, counted = 0;
  // `again`: times the plans of two variants once more.
  const auto report = [&](row& r, const auto& again) -> iso::result<void> {
    loading += r.loading;
    const row* before = r.of.before < 0 ? nullptr : &all[std::size_t(r.of.before)];
    if (r.choices.empty()) std::printf("%-28s %9.2f us, no choice among variants\n", r.of.text().c_str(), 1e6 * (r.usual - r.forward));
    for (const variants& choice : r.choices) {
      if (before != nullptr && std::find(before->choices.begin(), before->choices.end(), choice) != before->choices.end()) continue;
      const auto chosen = std::find_if(choice.begin(), choice.end(), [](const auto& v) { return v.chosen; });
      if (chosen == choice.end()) continue;
      const std::string mine = tile_of(chosen->name);
      std::string fastest = mine;
      const auto times = r.seconds;
      auto rounds = r.rounds;
      const auto less = r.forward;
      const auto ratio_to = [&](const std::string& other) {
        if constexpr (on_host) return bench::ratio_of_least(r.rounds[mine], r.rounds[other]);
        else return (r.seconds.at(mine) - r.forward) / (r.seconds.at(other) - r.forward);
      };
      for (const auto& [name, seconds] : r.seconds)
        if (has(choice, name) && ratio_to(name) > ratio_to(fastest)) fastest = name;
      const auto ratio = [&] { return ratio_to(fastest); };
      const double first = ratio();
      if (first > most)
        if (auto t = again(mine, fastest); !t) return t;
      const double own = r.seconds.at(mine) - r.forward, best = std::min(own, r.seconds.at(fastest) - r.forward),
                   last = std::max(ratio(), 1.0);
      const auto count = std::count_if(choice.begin(), choice.end(), [](const auto& v) { return v.unfit.empty(); });
      std::printf("%-28s %9.2f us by %s (predicted %.2f), the fastest of %d %9.2f us by %s: %.3f", r.of.text().c_str(), 1e6 * own,
                  chosen->name.c_str(), 1e6 * chosen->seconds, int(count), 1e6 * best, fastest.c_str(), last);
      if (first > most) std::printf(", at first %.3f, %s", first, last > most ? "confirmed" : "not confirmed");
      std::printf("\n");
      for (const auto& v : choice)
        if (const auto t = times.find(tile_of(v.name)); every && v.unfit.empty() && t != times.end()) {
          std::printf("  %9.2f us, predicted %9.2f, by %s", 1e6 * (t->second - less), 1e6 * v.seconds, v.name.c_str());
          if constexpr (on_host) std::printf(", in short rounds %.3f", bench::ratio_of_least(rounds[t->first], rounds[mine]));
          std::printf("\n");
        }
      ++counted, above += last > most ? 1 : 0, worst = std::max(worst, last);
    }
    std::fflush(stdout);
    return {};
  };
  const auto open = [&](const std::string& variant) {
    options asked = o;
    ask_for(asked, variant);
    return iso::device<target>::open(asked);
  };
  auto device = open("");
  if (!device) return bench::fail("bench_variants", device.error());
  if (calibrates)
    if (auto r = calibrate(*device); !r) return bench::fail("bench_variants", r.error());
  std::map<std::string, iso::device<target>> devices;  // that take a variant
  for (row& r : all) {
    std::vector<std::string> names;  // of variants that devices are asked for; empty: as the library chooses
    std::vector<contender> contenders;
    const auto enter = [&](const iso::device<target>& d, const problem& p, const std::string& name) -> iso::result<void> {
      auto c = load(d, p);
      if (!c) return c.error();
      contenders.push_back(*std::move(c)), names.push_back(name);
      return {};
    };
    if (auto e = enter(*device, r.of, ""); !e) return bench::fail("bench_variants", e.error());
    r.choices = contenders[0].choices, r.loading = contenders[0].loading;
    std::vector<std::string> asked;
    for (const variants& choice : r.choices)
      for (const auto& v : choice)
        if (v.unfit.empty() && std::find(asked.begin(), asked.end(), tile_of(v.name)) == asked.end()) asked.push_back(tile_of(v.name));
    if (std::holds_alternative<product>(r.of.model) && asked.size() > 0)
      names.clear(), contenders.clear();  // one of them is the chosen one
    for (int n = 0; n < loads; ++n)
      for (const std::string& name : asked) {
        auto at = devices.find(name);
        if (at == devices.end()) {
          auto d = open(name);
          if (!d) return bench::fail("bench_variants", d.error());
          at = devices.emplace(name, *std::move(d)).first;
        }
        if (auto e = enter(at->second, r.of, name); !e) return bench::fail("bench_variants", e.error());
      }
    constexpr std::string_view forward = "forward";
    if (r.of.before >= 0)
      if (auto e = enter(*device, all[std::size_t(r.of.before)].of, std::string(forward)); !e)
        return bench::fail("bench_variants", e.error());
    // Sets the times of a row from the plans whose names are wanted.
    const auto measure = [&](const auto& wanted, int more) -> iso::result<void> {
      std::vector<contender*> some;
      for (std::size_t k = 0; k < names.size(); ++k)
        if (wanted(names[k]) || names[k] == forward) some.push_back(&contenders[k]), r.seconds.erase(names[k]);
      if (auto t = time(some, span, more); !t) return t;
      for (std::size_t k = 0; k < names.size(); ++k) {
        if (!wanted(names[k]) && names[k] != forward) continue;
        const double least = *std::min_element(contenders[k].seconds.begin(), contenders[k].seconds.end());
        if constexpr (on_host) r.rounds[names[k]] = contenders[k].seconds;
        if (every && loads > 1) std::printf("  %9.2f us, %s by %s\n", 1e6 * least, r.of.text().c_str(), names[k].c_str());
        if (names[k] == forward) r.forward = least;
        else if (names[k].empty()) r.usual = least;
        else if (const auto [at, fresh] = r.seconds.emplace(names[k], least); !fresh) at->second = std::min(at->second, least);
      }
      return {};
    };
    if (auto t = measure([](const std::string&) { return true; }, 1); !t) return bench::fail("bench_variants", t.error());
    const auto again = [&](const std::string& one, const std::string& other) {
      return measure([&](const std::string& name) { return name == one || name == other; }, 4);
    };
    if (auto e = report(r, again); !e) return bench::fail("bench_variants", e.error());
  }
  std::printf(
      "%d steps with a choice: the chosen variant takes at most %.3f times as long as the fastest, and more than 1.03 times in %d, "
      "confirmed; loading "
      "all "
      "plans took %.2f s\n",
      counted, worst, above, loading);
}
