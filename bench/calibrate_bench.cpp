/// bench_calibrate [--repeats N] [--parts] [--step BATCH] [--calibration FOLDER]: how long it takes to calibrate the device, first and then N times (8) more, when code is loaded and pipelines are made, and how
/// far the figures of these N lie apart. --parts: also what each part took, the median of the N. --step: predicted beside measured time of a
/// training step of GPT-2 124M of BATCH x 1,024 tokens, by the medians of the figures. --calibration: keeps these medians, for other programs. The device is warmed up for 0.3 s first, by calibrations.
#include <isotope/calibrate/measure.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include "measure.hpp"
#include "predicted.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace {
namespace iso = isotope;
using bench::median;
using target = iso::selected;

/// Times a training step of GPT-2 124M and compares it with its prediction.
iso::result<void> compare_step(const iso::device<target>& device, const iso::calibration& c, int batch) {
  constexpr iso::model::gpt gpt2{.layers = 12, .heads = 12, .width = 768, .vocab = 50257, .context = 1024};
  auto plan = iso::plan_training<target>(iso::model::gpt_loss_of{gpt2, batch, gpt2.context});
  if (!plan) return std::move(plan).error();
  auto s = device.load(*std::move(plan));
  if (!s) return std::move(s).error();
  s->initialize(1);
  double least = 1e9;
  for (const double end = bench::seconds() + 1; bench::seconds() < end;) {
    const double began = bench::seconds();
    if (auto r = s->run_plan(0); !r) return r.error();
    least = std::min(least, bench::seconds() - began);
  }
  const auto e = iso::estimate(s->plan(), c, {.launches = std::int64_t(s->launches().size())});
  std::printf("training step of GPT-2 124M, %d x 1,024: predicted %.3f ms, measured %.3f, measured / predicted %.2f\n", batch,
              1e3 * e.seconds(), 1e3 * least, least / e.seconds());
  return {};
}
}  // namespace

int main(int argc, char** argv) {
  int repeats = 8, step = 0;
  bool parts = false;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--repeats" && i + 1 < argc) repeats = std::max(1, std::atoi(argv[++i]));
    else if (word == "--parts") parts = true;
    else if (word == "--step" && i + 1 < argc) step = std::atoi(argv[++i]);
    else if (word == "--calibration" && i + 1 < argc) folder = argv[++i];
    else return std::fprintf(stderr, "bench_calibrate: no flag '%s'\n", argv[i]), 2;
  }
  using options = target::backend::options;
  const auto device = iso::device<target>::open(bench::options_of_environment<options>());
  if (!device) return bench::fail("bench_calibrate", device.error());
  std::vector<iso::calibration_part> spent;
  const auto calibrated = [&](iso::calibration& c) -> iso::result<double> {
    spent.clear();
    const double began = bench::seconds();
    auto r = iso::measure_device<target>(*device, bench::seconds, "", &spent);
    const double took = bench::seconds() - began;
    if (!r) return std::move(r).error();
    c = *std::move(r);
    return took;
  };
  iso::calibration c;
  const auto first = calibrated(c);
  if (!first) return bench::fail("bench_calibrate", first.error());
  for (const double end = bench::seconds() + 0.3; bench::seconds() < end;)
    if (auto r = calibrated(c); !r) return bench::fail("bench_calibrate", r.error());
  std::vector<double> took;
  std::vector<std::vector<double>> figures(iso::quantities), of_part;
  for (int k = 0; k < repeats; ++k) {
    const auto t = calibrated(c);
    if (!t) return bench::fail("bench_calibrate", t.error());
    took.push_back(*t);
    for (std::size_t q = 0; q < iso::quantities; ++q) figures[q].push_back(c.figures[q].value);
    of_part.resize(spent.size());
    for (std::size_t p = 0; p < spent.size(); ++p) of_part[p].push_back(spent[p].seconds);
  }
  std::printf("calibrating %s in %s: the first time %.0f ms, then %.1f ms (median of %d)\n", device->info().name.c_str(), c.format.c_str(),
              1e3 * *first, 1e3 * median(took), repeats);
  for (std::size_t p = 0; parts && p < spent.size(); ++p)
    std::printf("  %-16s %8.3f ms\n", std::string(spent[p].name).c_str(), 1e3 * median(of_part[p]));
  for (std::size_t q = 0; q < iso::quantities; ++q) {
    const auto [least, most] = std::minmax_element(figures[q].begin(), figures[q].end());
    c.figures[q].value = median(figures[q]);
    std::printf("%-16s %12.4g, from %.3f to %.3f of it\n", std::string(iso::quantity_names[q]).c_str(), c.figures[q].value,
                *least / c.figures[q].value, *most / c.figures[q].value);
  }
  if (!folder.empty()) {
    const auto path = iso::calibration_path(folder, device->info());
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    c.device = support::calibration_key(device->info());
    if (auto r = iso::write_calibration(path, c); !r) return bench::fail("bench_calibrate", r.error());
  }
  if (step > 0)
    if (auto r = compare_step(*device, c, step); !r) return bench::fail("bench_calibrate", r.error());
}
