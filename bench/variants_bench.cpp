/// bench_variants [--op matmul|attention] [--rows N] [--random N] [--threads N] [--calibrate] [--seconds S] [--no-library] [--measure] [--loads N] [--step] [--no-gpt2] [--all]:
/// whether choose_kernel takes the fastest variant. The products of a training step of GPT-2 124M of N rows (4,096), then N products of random sizes (50); with `--op attention` its attention of up to 8 N tokens, the gradient and
/// attention to 512 cached positions. Each runs as the library chooses, then with each variant that fits, and the line says how much longer the chosen one
/// takes than the fastest. Times are medians of runs of a plan with this step alone, of all variants in turn, for S seconds (0.05) each, after a warm-up; of N loads
/// (1) with other places in memory, the least; of a gradient without the forward step, which has a line of its own. --threads: of a processor.
/// --calibrate: a processor chooses by its rates, which are measured first. --measure: the library times variants when it loads a plan, and takes the fastest. --step: first, what loading a training step of GPT-2 124M of N rows and the step itself take, by estimate and
/// with timed variants. --no-library: on cuda, without cuBLASLt, which takes products that have no epilogue. --no-gpt2: without its products. --all: every time of every variant.
#include <isotope/calibrate/measure.hpp>
#include <isotope/calibrate/use_rates.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include "measure.hpp"

#include <algorithm>
#include <cmath>
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

/// y (M, N) = x (M, K) w (K, N). Lines of x run along K in orders nt and nn, else along M; those of w run along K in order nt, else along N.
struct product {
  std::int64_t M = 1, N = 1, K = 1;
  std::string_view order = "nt";

  /// Numbers as those of a model: ones would take less power, and large products would be faster than in a model.
  template <iso::Machine M_> constexpr iso::tensor<M_> operator()(iso::scope<M_> s) const {
    const auto x = order[0] == 'n' ? s.param("x", {M, K}, iso::init::normal(1)) : transpose(s.param("x", {K, M}, iso::init::normal(1)));
    const auto w = order[1] == 'n' ? s.param("w", {K, N}, iso::init::normal(1)) : transpose(s.param("w", {N, K}, iso::init::normal(1)));
    return narrow(matmul(x, w), 0, 0, 1);  // the host gets one row
  }
  std::string text() const { return std::to_string(M) + " x " + std::to_string(N) + " x " + std::to_string(K) + " " + std::string(order); }
};

/// The products of a training step of GPT-2 124M with so many rows: forward, gradients of activations and of weights.
std::vector<product> products_of_gpt2(std::int64_t rows) {
  std::vector<product> all;
  for (const auto& [N, K] : {std::pair<std::int64_t, std::int64_t>{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}, {50304, 768}}) {
    all.push_back({rows, N, K, "nt"});
    all.push_back({rows, K, N, "nn"});
    all.push_back({N, K, rows, "tn"});
  }
  return all;
}
/// Sizes from 64 to 8,192, by the logarithm, in multiples of 8.
std::vector<product> random_products(int count) {
  std::vector<product> all;
  for (int k = 0; k < count; ++k) {
    const auto u = iso::philox(1, std::uint64_t(k), 0, 0);
    const auto size = [](std::uint32_t w) { return 8 * std::int64_t(std::exp2(3 + 7 * double(iso::unit_interval(w)))); };
    constexpr std::string_view orders[] = {"nt", "nn", "tn"};
    all.push_back({size(u[0]), size(u[1]), size(u[2]), orders[u[3] % 3]});
  }
  return all;
}

/// Attention of sequences (B, S) with the heads of GPT-2 124M, or that and its gradient.
struct attention_step {
  std::int64_t B = 1, S = 1;
  bool gradient = false;
  static constexpr std::int64_t H = 12, C = 768;

  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto qkv = s.param("qkv", {B, S, 3 * C}, iso::init::normal(1));
    const iso::op::attention_constants c{.heads = H, .kv_heads = H, .causal = true, .packed = true, .scale = 0.125};
    const auto at = iso::place::current();
    const auto y = iso::apply_op<iso::op::attention>(s.machine, {qkv.id}, c, at);
    const auto row = [](iso::tensor<M> x) { return narrow(narrow(x, 0, 0, 1), 1, 0, 1); };  // the host gets one
    if (!gradient) return row({s.machine, y.out[0]});
    const auto dy = s.param("dy", {B, S, C}, iso::init::normal(1));
    const auto dx = iso::apply_op<iso::op::attention_grad>(s.machine, {qkv.id, y.out[0], y.out[1], dy.id}, c, at);
    return row({s.machine, dx.out[0]});
  }
  std::string text() const {
    return std::string(gradient ? "gradient of attention " : "attention ") + std::to_string(B) + " x " + std::to_string(S);
  }
};
/// Attention of B queries, each of its own sequence, to caches of 1,024 positions, of which 512 are filled.
struct cached_step {
  std::int64_t B = 1;

  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto q = s.param("q", {B, 768}, iso::init::normal(1));
    const auto keys = s.state("keys", {B, 12, 1024, 64}), values = s.state("values", {B, 12, 1024, 64});
    const auto sequence = s.input("sequence", {B}, iso::dtype::i32), position = s.input("position", {B}, iso::dtype::i32);
    return narrow(attention_cached(q, keys, values, sequence, position, 12), 0, 0, 1);
  }
  std::string text() const { return "attention to 512 cached, rows " + std::to_string(B); }
};

/// What is measured: `model` with the sizes, and, of a gradient, the row that has the forward step alone.
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
  if (std::holds_alternative<cached_step>(p.model)) {
    for (const char* label : {"sequence", "position"}) {
      auto in = c.s.template input<std::int32_t>(label);
      if (!in) return in.error();
      for (std::size_t k = 0; k < in->size(); ++k) (*in)[k] = label[0] == 's' ? std::int32_t(k) : 511;
    }
  }
  for (const std::string& text : c.s.queue().messages()) std::printf("%s\n", text.c_str());
  for (const auto& l : c.s.launches(iso::phase_always))
    if (!l.considered.empty()) c.choices.push_back(l.considered);
  return c;
}
/// Times all in turn, so that a clock that changes and other work change it for all: a warm-up, then at least five rounds, and more for `span` seconds each. Before
/// a short measurement the plan runs untimed, since another one has left its clock and its caches; each round begins with another plan.
iso::result<void> time(std::vector<contender>& all, double span) {
  for (contender& c : all) {
    auto first = timed(c, 1);
    if (first && *first < span) first = timed(c, 1);  // the first run of a plan also makes what later ones find
    if (!first) return first.error();
    c.times = std::clamp(int(0.2 * span / std::max(*first, 1e-7)), 1, 32);
  }
  constexpr double warm = iso::device<target>::on_host ? 0.02 : 0.2;  // with 0.02 s, the same product took up to 3.7 times as long on a GPU
  for (int part = 0; part < 2; ++part) {
    const double end = bench::seconds() + (part == 0 ? warm : 2 * span * double(all.size()));
    for (std::size_t round = 0; bench::seconds() < end || (part == 1 && round < 5); ++round)
      for (std::size_t k = 0; k < all.size(); ++k) {
        contender& c = all[(k + round) % all.size()];
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

struct row {
  problem of;
  double usual = 0, loading = 0;  // seconds of a run and of loading, as the library chooses
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
  double span = 0.05;
  bool every = false, attention = false, step = false, gpt2 = true, calibrates = false;
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
    else if (word == "--op") attention = std::string_view(value()) == "attention";
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
  if (attention) {
    for (const auto& [B, S] : {std::pair{4, 1024}, {32, 1024}, {8, 128}, {64, 128}, {12, 256}, {64, 256}}) {
      if (B * S > 8 * rows) continue;
      all.push_back({{attention_step{B, S}}, {}, {}});
      all.push_back({{attention_step{B, S, true}, int(all.size()) - 1}, {}, {}});
    }
    for (const int B : {1, 8, 64}) all.push_back({{cached_step{B}}, {}, {}});
  } else {
    if (gpt2)
      for (const auto& p : products_of_gpt2(rows)) all.push_back({{p}, {}, {}});
    for (const auto& p : random_products(random)) all.push_back({{p}, {}, {}});
  }

  double worst = 1, loading = 0;
  int above = 0, counted = 0;
  const auto report = [&](const row& r) {
    loading += r.loading;
    const row* before = r.of.before < 0 ? nullptr : &all[std::size_t(r.of.before)];
    const double less = before == nullptr ? 0 : before->usual;
    if (r.choices.empty()) std::printf("%-28s %9.2f us, no choice among variants\n", r.of.text().c_str(), 1e6 * (r.usual - less));
    for (const variants& choice : r.choices) {
      if (before != nullptr && std::find(before->choices.begin(), before->choices.end(), choice) != before->choices.end()) continue;
      const auto chosen = std::find_if(choice.begin(), choice.end(), [](const auto& v) { return v.chosen; });
      if (chosen == choice.end()) continue;
      const std::pair<const std::string, double>* fastest = nullptr;
      for (const auto& t : r.seconds)
        if (has(choice, t.first) && (fastest == nullptr || t.second < fastest->second)) fastest = &t;
      const double own = r.seconds.at(tile_of(chosen->name)) - less, best = fastest->second - less, ratio = own / best;
      const auto count = std::count_if(choice.begin(), choice.end(), [](const auto& v) { return v.unfit.empty(); });
      std::printf("%-28s %9.2f us by %s (predicted %.2f), the fastest of %d %9.2f us by %s: %.3f\n", r.of.text().c_str(), 1e6 * own,
                  chosen->name.c_str(), 1e6 * chosen->seconds, int(count), 1e6 * best, fastest->first.c_str(), ratio);
      for (const auto& v : choice)
        if (const auto t = r.seconds.find(tile_of(v.name)); every && v.unfit.empty() && t != r.seconds.end())
          std::printf("  %9.2f us, predicted %9.2f, by %s\n", 1e6 * (t->second - less), 1e6 * v.seconds, v.name.c_str());
      ++counted, above += ratio > 1.03 ? 1 : 0, worst = std::max(worst, ratio);
    }
    std::fflush(stdout);
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
    std::vector<std::string> names{""};
    std::vector<contender> contenders;
    const auto enter = [&](const iso::device<target>& d) -> iso::result<void> {
      auto c = load(d, r.of);
      if (!c) return c.error();
      contenders.push_back(*std::move(c));
      return {};
    };
    if (auto e = enter(*device); !e) return bench::fail("bench_variants", e.error());
    r.choices = contenders[0].choices, r.loading = contenders[0].loading;
    for (const variants& choice : r.choices)
      for (const auto& v : choice)
        if (v.unfit.empty() && std::find(names.begin(), names.end(), tile_of(v.name)) == names.end()) names.push_back(tile_of(v.name));
    if (std::holds_alternative<product>(r.of.model) && names.size() > 1)
      names.erase(names.begin()), contenders.clear();  // one of the others is the chosen one
    const std::size_t own = contenders.size();
    names.resize(own + (names.size() - own) * std::size_t(loads));
    for (std::size_t k = own, n = (names.size() - own) / std::size_t(loads); k < names.size(); ++k) {
      if (k >= own + n) names[k] = names[k - n];
      auto at = devices.find(names[k]);
      if (at == devices.end()) {
        auto d = open(names[k]);
        if (!d) return bench::fail("bench_variants", d.error());
        at = devices.emplace(names[k], *std::move(d)).first;
      }
      if (auto e = enter(at->second); !e) return bench::fail("bench_variants", e.error());
    }
    if (auto t = time(contenders, span); !t) return bench::fail("bench_variants", t.error());
    if (own > 0) r.usual = bench::median(contenders[0].seconds);
    for (std::size_t k = own; k < names.size(); ++k) {
      const double median = bench::median(contenders[k].seconds);
      if (every && loads > 1) std::printf("  %9.2f us, %s by %s\n", 1e6 * median, r.of.text().c_str(), names[k].c_str());
      const auto [at, fresh] = r.seconds.emplace(names[k], median);
      at->second = std::min(at->second, median);
    }
    report(r);
  }
  std::printf(
      "%d steps with a choice: the chosen variant takes at most %.3f times as long as the fastest, and more than 1.03 times in %d; loading "
      "all "
      "plans took %.2f s\n",
      counted, worst, above, loading);
}
