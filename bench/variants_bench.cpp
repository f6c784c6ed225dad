/// bench_variants [--rows N] [--random N] [--seconds S] [--no-library] [--all]: whether choose_kernel takes the fastest variant. The products of a training step of
/// GPT-2 124M of N rows (4,096), then N products of random sizes (50): each runs as the library chooses, then with each variant that fits, and the
/// line says how much longer the chosen one takes than the fastest. Times are the least of runs of a plan with this product alone, for S seconds (0.05)
/// each, after as long a warm-up. --no-library: on cuda, without cuBLASLt, which takes products that have no epilogue. --all: every time of every variant.
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
#include <vector>

namespace {
namespace iso = isotope;
using target = iso::selected;
using options = typename target::backend::options;

/// y (M, N) = x (M, K) w (K, N). Lines of x run along K in orders nt and nn, else along M; those of w run along K in order nt, else along N.
struct product {
  std::int64_t M = 1, N = 1, K = 1;
  std::string_view order = "nt";

  template <iso::Machine M_> constexpr iso::tensor<M_> operator()(iso::scope<M_> s) const {
    const auto x = order[0] == 'n' ? s.param("x", {M, K}, iso::init::ones) : transpose(s.param("x", {K, M}, iso::init::ones));
    const auto w = order[1] == 'n' ? s.param("w", {K, N}, iso::init::ones) : transpose(s.param("w", {N, K}, iso::init::ones));
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

struct found {
  double seconds = 0;
  std::vector<iso::considered_variant> considered;
};
iso::result<found> run(const iso::device<target>& device, const product& p, double span) {
  auto plan = iso::plan_inference<target>(p);
  if (!plan) return std::move(plan).error();
  auto s = device.load(*std::move(plan));
  if (!s) return std::move(s).error();
  s->initialize(1);
  found f;
  for (const auto& l : s->launches(iso::phase_always))
    if (!l.considered.empty()) f.considered = l.considered;
  const auto timed = [&](int times) -> iso::result<double> {
    const double began = bench::seconds();
    if (auto r = s->run_plan_times(0, times); !r) return r.error();
    return (bench::seconds() - began) / times;
  };
  for (int part = 0; part < 2; ++part) {  // the first warms up
    f.seconds = 1e9;
    for (const double end = bench::seconds() + span; bench::seconds() < end;) {
      const auto t = timed(32);
      if (!t) return t.error();
      f.seconds = std::min(f.seconds, *t);
    }
  }
  return f;
}

/// The name of a variant without the parts of K, which depend on the sizes.
std::string tile_of(const std::string& name) { return name.substr(0, name.find(", K in")); }

/// Asks a device for a variant. Backends whose kernels choose none have no such option.
template <class Options> void ask_for([[maybe_unused]] Options& o, [[maybe_unused]] const std::string& variant) {
  if constexpr (requires { o.diagnose.variant; }) o.diagnose.variant = variant;
}

struct row {
  product of;
  found usual;
  std::map<std::string, double> seconds;  // by variant
};
}  // namespace

int main(int argc, char** argv) {
  std::int64_t rows = 4096;
  int random = 50;
  double span = 0.05;
  bool every = false;
  options o{.cache = std::getenv("ISOTOPE_CACHE") != nullptr ? std::getenv("ISOTOPE_CACHE") : ""};
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : "0"; };
    if (word == "--rows") rows = std::max(1, std::atoi(value()));
    else if (word == "--random") random = std::atoi(value());
    else if (word == "--seconds") span = std::atof(value());
    else if (word == "--all") every = true;
    else if (word != "--no-library") return std::fprintf(stderr, "bench_variants: no flag '%s'\n", argv[i]), 2;
    [word](auto& x) {
      if constexpr (requires { x.diagnose.no_library; })
        if (word == "--no-library") x.diagnose.no_library = true;
    }(o);
  }
  std::vector<row> all;
  for (const auto& p : products_of_gpt2(rows)) all.push_back({p, {}, {}});
  for (const auto& p : random_products(random)) all.push_back({p, {}, {}});

  std::vector<std::string> names;
  {
    auto device = iso::device<target>::open(o);
    if (!device) return bench::fail("bench_variants", device.error());
    for (row& r : all) {
      auto f = run(*device, r.of, span);
      if (!f) return bench::fail("bench_variants", f.error());
      r.usual = *std::move(f);
      for (const auto& v : r.usual.considered)
        if (v.unfit.empty() && std::find(names.begin(), names.end(), tile_of(v.name)) == names.end()) names.push_back(tile_of(v.name));
    }
  }
  for (const std::string& name : names) {
    ask_for(o, name);
    auto device = iso::device<target>::open(o);
    if (!device) return bench::fail("bench_variants", device.error());
    for (row& r : all) {
      const bool fits = std::any_of(r.usual.considered.begin(), r.usual.considered.end(),
                                    [&](const auto& v) { return v.unfit.empty() && tile_of(v.name) == name; });
      if (!fits) continue;
      const auto f = run(*device, r.of, span);
      if (!f) return bench::fail("bench_variants", f.error());
      r.seconds[name] = f->seconds;
    }
  }
  double worst = 1;
  int above = 0, counted = 0;
  for (const row& r : all) {
    const auto chosen = std::find_if(r.usual.considered.begin(), r.usual.considered.end(), [](const auto& v) { return v.chosen; });
    if (chosen == r.usual.considered.end()) {
      std::printf("%-28s %9.2f us, no choice among variants\n", r.of.text().c_str(), 1e6 * r.usual.seconds);
      continue;
    }
    const auto fastest =
        std::min_element(r.seconds.begin(), r.seconds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const double own = r.seconds.at(tile_of(chosen->name)), ratio = own / fastest->second;
    std::printf("%-28s %9.2f us by %s (predicted %.2f), the fastest of %zu %9.2f us by %s: %.3f\n", r.of.text().c_str(), 1e6 * own,
                chosen->name.c_str(), 1e6 * chosen->seconds, r.seconds.size(), 1e6 * fastest->second, fastest->first.c_str(), ratio);
    for (const auto& v : r.usual.considered)
      if (const auto t = r.seconds.find(tile_of(v.name)); every && t != r.seconds.end())
        std::printf("  %9.2f us, predicted %9.2f, by %s\n", 1e6 * t->second, 1e6 * v.seconds, v.name.c_str());
    ++counted, above += ratio > 1.03 ? 1 : 0, worst = std::max(worst, ratio);
  }
  std::printf(
      "%d products with a choice: the chosen variant takes at most %.3f times as long as the fastest, and more than 1.03 times in %d\n",
      counted, worst, above);
}
