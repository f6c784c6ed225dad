#pragma once
/// isotope-info calibrate FOLDER [SIZE BATCH LENGTH]: what this device was measured to do and, for a size, the time of a training step that follows.
#include "../support/calibration_key.hpp"
#include "../support/clock.hpp"
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "settings.hpp"
#include "step_size.hpp"

#include <isotope/calibrate/estimate.hpp>
#include <isotope/calibrate/measure.hpp>
#include <isotope/config/table.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace info_program {

/// Makes the folder of a file. If it can not, the write of the file says so.
inline void make_folder_of(const std::string& path) {
  std::error_code unmade;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), unmade);
}

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
template <class Device> int print_step(const Device& device, const isotope::calibration& c, const step_size& step) {
  using namespace isotope;
  int code = support::success;
  auto plan = plan_training<selected>(step.loss(), {});
  if (support::failed(program, plan, code)) return code;
  auto session = device.load(*std::move(plan));
  if (support::failed(program, session, code)) return code;
  session->initialize(1);
  const auto took = least_step(*session, std::size_t(step.batch) * std::size_t(step.length));
  if (support::failed(program, took, code)) return code;
  const time_estimate e = estimate(session->plan(), c, {.launches = std::int64_t(session->launches().size())});
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
  if (arguments.size() != 1 && arguments.size() != 4)
    return support::report(program, fail(errc::invalid_argument,
                                         "calibrate takes a folder, or a folder, a size, a batch and a length, not " +
                                             std::to_string(arguments.size()) + " arguments",
                                         "command line", "isotope-info calibrate ~/.cache gpt2-124m 4 1024"));
  int code = support::success;
  std::optional<step_size> step;
  if (arguments.size() == 4) {
    const auto given = step_size_from(std::span(arguments).last<3>());
    if (support::failed(program, given, code)) return code;
    step = *given;
  }
  const auto device = isotope::device<selected>::open();
  if (support::failed(program, device, code)) return code;
  const std::string path = calibration_path(arguments[0], device->info());
  make_folder_of(path);
  const double began = support::seconds_now();
  const auto found = load_or_measure<selected>(*device, path, support::calibration_key(device->info()), support::seconds_now);
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
  return !step ? code : detail::print_step(*device, found->figures, *step);
}

}  // namespace info_program
