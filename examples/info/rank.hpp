#pragma once
/// isotope-info rank FOLDER SIZE BATCH LENGTH [--measure]: orders the devices of this build, and those that other builds have ranked in the same folder, by
/// the predicted time of a training step.
#include "../support/calibration_key.hpp"
#include "../support/exit_code.hpp"
#include "../support/machine.hpp"
#include "../support/output.hpp"
#include "calibrate.hpp"
#include "rank_text.hpp"
#include "settings.hpp"
#include "step_size.hpp"

#include <isotope/build_info.hpp>
#include <isotope/calibrate/rank_file.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace info_program {

namespace detail {

/// The memory that steps of a size take by batch. Each batch is planned once, however many devices there are.
class planned_bytes {
 public:
  explicit planned_bytes(const step_size& step) : step_(step) {}
  /// Negative: the batch has no plan.
  std::int64_t operator()(std::int64_t batch) {
    const auto [at, made] = known_.try_emplace(batch, -1);
    if (made)
      if (const auto plan = isotope::plan_training<isotope::selected>(step_.loss(int(batch)), {})) at->second = plan->totals.bytes;
    return at->second;
  }

 private:
  step_size step_;
  std::map<std::int64_t, std::int64_t> known_;
};

/// Fills in what device `index` is predicted to take and what fits there. @error as the device reports
inline isotope::result<void> predict(isotope::rank_candidate& c, int index, const isotope::plan_view& plan, const std::string& folder,
                                     bool measure, planned_bytes& bytes) {
  using namespace isotope;
  selected_backend::options options;
  options.name = std::to_string(index);
  const auto device = isotope::device<selected>::open(options);
  if (!device) return device.error();
  const std::string path = calibration_path(folder, device->info()), key = support::calibration_key(device->info());
  calibration figures;
  if (measure) {
    make_folder_of(path);
    auto found = load_or_measure<selected>(*device, path, key, support::seconds_now);
    if (!found) return found.error();
    if (!found->message.empty()) support::print(support::one_line(found->message) + "\n");
    figures = std::move(found->figures);
  } else {
    const auto there = read_calibrations(path, key);
    if (const calibration* found = there.find(c.format)) figures = *found;
    else if (!there.ignored.empty()) c.problem = support::one_line("the device was not measured: " + there.ignored);
  }
  c.estimate = estimate(plan, figures);
  c.planned_bytes = plan.totals.bytes;
  if (const auto memory = device->memory()) c.device_bytes = memory->free;
  c.greatest_batch = greatest_batch(c.device_bytes, [&](std::int64_t batch) { return bytes(batch); });
  return {};
}

/// All devices of this build's backend; if there is none, one candidate that says why.
inline std::vector<isotope::rank_candidate> own_candidates(const step_size& step, const std::string& folder, bool measure) {
  using namespace isotope;
  const std::vector<device_info> all = devices<selected_backend>();
  std::vector<rank_candidate> candidates;
  const auto add = [&](const std::string& device, const std::string& problem) -> rank_candidate& {
    return candidates.emplace_back(rank_candidate{.backend = std::string(selected_backend::name),
                                                  .device = device,
                                                  .format = std::string(name_of(selected::precision::type)),
                                                  .problem = support::one_line(problem)});
  };
  if (all.empty()) {
    const auto none = device<selected>::open();
    add("-", none ? "the backend lists no device" : none.error().line());
    return candidates;
  }
  const auto plan = plan_training<selected>(step.loss(), {});
  planned_bytes bytes(step);
  for (const device_info& d : all) {
    rank_candidate& c = add(d.name + (all.size() > 1 ? ", device " + std::to_string(d.index) : ""), d.problem);
    if (!c.problem.empty()) continue;
    const auto predicted = plan ? predict(c, d.index, *plan, folder, measure, bytes) : result<void>(plan.error());
    if (!predicted) c.problem = support::one_line(predicted.error().line());
  }
  return candidates;
}

/// Adds the candidates of all files in the folder but `own`, and says which files are ignored.
inline void add_candidates_of_other_builds(std::vector<isotope::rank_candidate>& all, const isotope::ranked_work& work,
                                           const std::string& folder, const std::string& own) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().extension() == ".json" && entry.path().filename() != own) names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    auto read = isotope::read_candidates(name, work);
    if (!read.ignored.empty()) support::print(support::one_line(read.ignored) + "\n");
    for (isotope::rank_candidate& c : read.all) all.push_back(std::move(c));
  }
}

}  // namespace detail

inline int rank(const std::vector<std::string>& arguments) {
  using namespace isotope;
  int code = support::success;
  support::command_words given;
  if (const auto read = support::read_flags(arguments, rank_flags, given); support::failed(program, read, code)) return code;
  const std::vector<std::string>& words = given.files;
  if (words.size() != 4)
    return support::report(
        program,
        fail(errc::invalid_argument, "rank takes a folder, a size, a batch and a length, not " + std::to_string(words.size()) + " words",
             "command line", "isotope-info rank ~/.cache gpt2-124m 4 1024 --measure"));
  const auto step = step_size_from(std::span(words).last<3>());
  if (support::failed(program, step, code)) return code;

  const ranked_work work{.model = words[1],
                         .batch = step->batch,
                         .length = step->length,
                         .machine = support::this_machine().processor,
                         .version = std::string(build_info<selected>.version)};
  const std::string folder = rank_folder(words[0], work);
  const std::string own = rank_file_name(selected_backend::name, name_of(selected::precision::type));
  std::vector<rank_candidate> all = detail::own_candidates(*step, words[0], given.has("--measure"));
  make_folder_of(folder + "/" + own);
  if (auto written = write_candidates(folder + "/" + own, work, all); !written) code = support::report(program, written.error());
  detail::add_candidates_of_other_builds(all, work, folder, own);

  const std::string lacks = detail::lacks_text(all);
  const ranking ranked = rank_by_time(std::move(all));
  std::vector<std::string> refused;
  bool unmeasured = false;
  for (const auto& [of, reason] : ranked.refusals) {
    refused.push_back(support::one_line(of.backend + " " + of.device + " " + of.format + ": " + reason));
    unmeasured |= of.backend == selected_backend::name && of.estimate.from == provenance::none;
  }
  if (ranked.order.empty()) {
    std::string line = "no device is ranked";
    for (const std::string& r : refused) line += "; " + r;
    return support::report(program, fail(errc::no_device, line, folder,
                                         unmeasured ? "give --measure, which measures them"
                                                    : "give a batch that fits, or repair what is said of the devices"));
  }
  support::print("training step of " + words[1] + ", batch " + words[2] + ", length " + words[3] + ", by predicted time\n\n" +
                 detail::order_text(ranked, *step) + (refused.empty() ? "" : "\n"));
  for (const std::string& r : refused) support::print("not ranked: " + r + "\n");
  if (unmeasured) support::print("--measure measures the devices of this build\n");
  support::print(lacks);
  return code;
}

}  // namespace info_program
