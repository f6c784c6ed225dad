#pragma once
/// isotope-info calibrate FOLDER [SIZE BATCH LENGTH]: what this device was measured to do and, for a size, the time of a training step that follows.
#include "../support/clock.hpp"
#include "../support/exit_code.hpp"
#include "../support/machine.hpp"
#include "../support/output.hpp"
#include "plan.hpp"
#include "settings.hpp"

#include <isotope/build_info.hpp>
#include <isotope/calibrate/estimate.hpp>
#include <isotope/calibrate/measure.hpp>
#include <isotope/config/table.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace info_program {

namespace detail {

inline std::string figure_text(isotope::quantity q, double x) {
  char text[48];
  if (isotope::is_time(q)) std::snprintf(text, sizeof text, "%.3f us", 1e6 * x);
  else std::snprintf(text, sizeof text, "%.3f G/s", 1e-9 * x);
  return text;
}

/// Random tokens need no text: a step takes the same time on zeros.
template <class Session> isotope::result<double> least_step(Session& s, std::size_t elems) {
  const std::vector<std::int32_t> ids(elems, 0);
  const isotope::batch b{ids, ids};
  double least = 1e9;
  const double end = support::seconds_now() + 2;
  for (int k = 0; k < 4 || (k < 30 && support::seconds_now() < end); ++k) {
    const double began = support::seconds_now();
    static_cast<void>(s.step(b, {}));
    if (auto r = s.status(); !r) return r.error();
    least = std::min(least, support::seconds_now() - began);
  }
  return least;
}

/// Predicts a training step, runs it a few times and compares.
template <class Device>
int print_step(const Device& device, const isotope::calibration& c, const isotope::model::named_gpt& size, int batch, int length) {
  using namespace isotope;
  int code = support::success;
  auto plan = plan_training<selected>(model::gpt_loss_of{size.size, batch, length}, {});
  if (support::failed(program, plan, code)) return code;
  const time_estimate e = estimate(*plan, c);
  auto session = device.load(*std::move(plan));
  if (support::failed(program, session, code)) return code;
  session->initialize(1);
  const auto took = least_step(*session, std::size_t(batch) * std::size_t(length));
  if (support::failed(program, took, code)) return code;
  std::string parts;
  char text[256];
  for (std::size_t k = 0; k < e.parts.size(); ++k) {
    std::snprintf(text, sizeof text, "%s%s %.3f ms", k == 0 ? "" : ", ", std::string(bound_names[k]).c_str(), 1e3 * e.parts[k]);
    parts += text;
  }
  std::snprintf(text, sizeof text, "predicted %.3f ms a step (", 1e3 * e.seconds());
  std::string line = text + parts;
  std::snprintf(text, sizeof text, "), measured %.3f ms, measured / predicted %.2f, %.1f %% of the matrix rate\n", 1e3 * *took,
                *took / e.seconds(), 100 * share_of_matrix_rate(e, *took, c));
  support::print("\n" + line + text);
  return code;
}

}  // namespace detail

inline int calibrate(const std::vector<std::string>& arguments) {
  using namespace isotope;
  const auto refuse = [](const std::string& what, const std::string& fix) {
    return support::report(program, fail(errc::invalid_argument, what, "command line", fix));
  };
  if (arguments.size() != 1 && arguments.size() != 4)
    return refuse(
        "calibrate takes a folder, or a folder, a size, a batch and a length, not " + std::to_string(arguments.size()) + " arguments",
        "isotope-info calibrate ~/.cache gpt2-124m 4 1024");
  const model::named_gpt* size = nullptr;
  int batch = 0, length = 0;
  if (arguments.size() == 4) {
    std::string names;
    for (const auto& s : model::gpt_sizes) {
      names += (names.empty() ? "" : ", ") + std::string(s.name);
      if (s.name == arguments[1]) size = &s;
    }
    if (size == nullptr) return refuse("no size is named '" + arguments[1] + "'", "give one of " + names);
    batch = size_from(arguments[2]), length = size_from(arguments[3]);
    if (batch == 0 || length == 0 || length > size->size.context)
      return refuse(
          "batch '" + arguments[2] + "' and length '" + arguments[3] + "' are no positive numbers, or the length exceeds the context",
          "give a length of at most " + std::to_string(size->size.context));
  }
  int code = support::success;
  const auto device = isotope::device<selected>::open();
  if (support::failed(program, device, code)) return code;
  const device_info about = device->info();
  const std::string path = calibration_path(arguments[0], about);
  std::error_code unmade;  // the write says so
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), unmade);
  const double began = support::seconds_now();
  const auto found = load_or_measure<selected>(
      *device, path, calibration_key(about, support::this_machine().processor, build_info<selected>.version), support::seconds_now);
  if (support::failed(program, found, code)) return code;
  if (!found->message.empty()) support::print(support::one_line(found->message) + "\n");
  char text[64];
  std::snprintf(text, sizeof text, " in %.0f ms\n\n", 1e3 * (support::seconds_now() - began));
  support::print((found->measured_now ? "measured and written to " : "read from ") + path + text);
  std::vector<std::vector<std::string>> rows = {{"figure", found->figures.format, "from"}};
  for (std::size_t q = 0; q < quantities; ++q) {
    const figure& f = found->figures.figures[q];
    rows.push_back({std::string(quantity_names[q]), detail::figure_text(quantity(q), f.value), std::string(name_of(f.from))});
  }
  support::print(config::columns(rows));
  return size == nullptr ? code : detail::print_step(*device, found->figures, *size, batch, length);
}

}  // namespace info_program
