/// bench_calibrate [--repeats N] [--parts] [--size SIZE] [--length T] [--step BATCH]... [--calibration FOLDER]: how long it takes to calibrate the device, first and then N times (8) more, when code is loaded and
/// pipelines are made, and how far the figures of these N lie apart. --parts: also what each part took, the median of the N. --step: predicted beside measured time of a training step of BATCH sequences, by the
/// medians of the figures; of the last SIZE (gpt2-124m) and length (1,024) before it. --calibration: keeps these medians, for other programs. The device is warmed up for 0.3 s first, by calibrations.
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

struct asked_step {
  std::string_view name;
  iso::model::gpt size;
  int batch = 1, length = 1024;
};

/// Times a training step and compares it with its prediction.
iso::result<void> compare_step(const iso::device<target>& device, const iso::calibration& c, const asked_step& of) {
  auto plan = iso::plan_training<target>(iso::model::gpt_loss_of{of.size, of.batch, of.length});
  if (!plan) return std::move(plan).error();
  auto s = device.load(*std::move(plan));
  if (!s) return std::move(s).error();
  s->initialize(1);
  double least = 1e9;
  int runs = 0;  // the first one touches memory that no later one does
  for (const double end = bench::seconds() + 1; bench::seconds() < end || runs < 2; ++runs) {
    const double began = bench::seconds();
    if (auto r = s->run_plan(0); !r) return r.error();
    least = std::min(least, bench::seconds() - began);
  }
  const auto e = iso::estimate(s->plan(), c, {.launches = std::int64_t(s->launches().size())});
  std::printf("training step of %s, %d x %d: predicted %.3f ms, measured %.3f, measured / predicted %.2f\n", std::string(of.name).c_str(),
              of.batch, of.length, 1e3 * e.seconds(), 1e3 * least, least / e.seconds());
  return {};
}
}  // namespace

int main(int argc, char** argv) {
  int repeats = 8;
  asked_step next{"gpt2-124m", {.layers = 12, .heads = 12, .width = 768, .vocab = 50257, .context = 1024}};
  std::vector<asked_step> steps;
  bool parts = false;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--repeats" && i + 1 < argc) repeats = std::max(1, std::atoi(argv[++i]));
    else if (word == "--parts") parts = true;
    else if (word == "--step" && i + 1 < argc) next.batch = std::max(1, std::atoi(argv[++i])), steps.push_back(next);
    else if (word == "--length" && i + 1 < argc) next.length = std::clamp(std::atoi(argv[++i]), 1, int(next.size.context));
    else if (word == "--size" && i + 1 < argc) {
      const auto* const known =
          std::find_if(iso::model::gpt_sizes.begin(), iso::model::gpt_sizes.end(), [&](const auto& s) { return s.name == argv[i + 1]; });
      if (known == iso::model::gpt_sizes.end()) return std::fprintf(stderr, "bench_calibrate: no size '%s'\n", argv[i + 1]), 2;
      next.name = known->name, next.size = known->size, ++i;
      next.length = std::min(next.length, int(next.size.context));
    } else if (word == "--calibration" && i + 1 < argc) folder = argv[++i];
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
  for (const asked_step& step : steps)
    if (auto r = compare_step(*device, c, step); !r) return bench::fail("bench_calibrate", r.error());
}
