#pragma once
/// Generation from a folder of Hugging Face.
#include "../support/clock.hpp"
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/interrupt.hpp"
#include "../support/output.hpp"
#include "measure.hpp"
#include "settings.hpp"

#include <isotope/generate/text_generator.hpp>
#include <isotope/io/file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace generate_program {

/// Every --prompt among the words, in order. The layers of settings keep only the last one.
inline std::vector<std::string> prompts_among(const std::vector<std::string>& words) {
  constexpr std::string_view flag = "--prompt", joined = "--prompt=";
  std::vector<std::string> all;
  for (std::size_t k = 0; k < words.size(); ++k)
    if (words[k] == flag && k + 1 < words.size()) all.push_back(words[++k]);
    else if (words[k].starts_with(joined)) all.push_back(words[k].substr(joined.size()));
  return all;
}
/// The prompts of the words, then those of the file, else the setting, which a file or a variable may have given. @error as io::read_file
inline isotope::result<std::vector<std::string>> every_prompt(const settings& s, std::vector<std::string> all) {
  if (!s.prompts.empty()) {
    auto bytes = isotope::io::read_file(s.prompts);
    if (!bytes) return std::move(bytes).error();
    for (const std::string_view line : isotope::io::detail::lines_of(bytes->text()))
      if (!line.empty()) all.emplace_back(line);
    if (all.empty()) return isotope::fail(isotope::errc::bad_format, "has no prompt", s.prompts, "write one on each line");
  }
  if (all.empty()) all.push_back(s.prompt);
  return all;
}

/// Plans first, as open_generator does. Reports are on the plan that decodes.
inline isotope::result<isotope::text_generator<support::target>> open_folder(const settings& s, const support::run_options& run,
                                                                             std::size_t prompts) {
  using support::target;
  auto folder = isotope::io::open_model(s.model);
  if (!folder) return std::move(folder).error();
  const auto config = isotope::interop::read_decoder_config(*folder);
  if (!config) return config.error();
  const auto adapters = asked_adapters(s);
  if (!adapters) return adapters.error();
  const isotope::batcher_options options{.slots = int(std::min(s.slots, std::int64_t(prompts))),
                                         .budget = run.budget(),
                                         .decompose_all = run.diagnose.decompose_all(),
                                         .stored = storage_for(*folder, run),
                                         .a8 = run.diagnose.a8};
  auto plans =
      std::visit([&](const auto& c) { return isotope::batcher<target>::plans(isotope::interop::inference_size(c), options); }, *config);
  if (!plans) return std::move(plans).error();
  const auto traced = [&](const auto& c) {
    const auto model = isotope::batcher<target>::decoding(isotope::interop::inference_size(c), options);
    return isotope::traced_inference<target>(model, true, options.decompose_all, options.stored, options.a8);
  };
  if (auto r = support::write_trace_reports<target>(run.diagnose, [&] { return std::visit(traced, *config); }); !r) return r.error();
  auto device = isotope::device<target>::open(run.device<target::backend>());
  if (!device) return std::move(device).error();
  auto opened =
      isotope::text_generator<target>::open(*device, *folder, *config, options, std::move(plans), *adapters ? &**adapters : nullptr);
  if (!opened) return opened;
  support::describe_load(run.program, run.diagnose, *device, opened->batch().loaded());
  if (auto r = support::write_plan_reports(program, s.diagnose, opened->batch().loaded()); !r) return r.error();
  return opened;
}

/// Prints each prompt and its continuation, in the order of the prompts: the first one that goes on as it comes, the others when those before them have ended.
inline int run_folder(const settings& s, std::vector<std::string> given) {
  int code = support::success;
  auto prompts = every_prompt(s, std::move(given));
  if (support::failed(program, prompts, code)) return code;
  const support::run_options options{program, s.machine, s.diagnose};
  auto generator = open_folder(s, options, prompts->size());
  if (support::failed(program, generator, code)) return code;
  isotope::text_request how{.tokens = s.tokens,
                            .temperature = float(s.temperature),
                            .top_k = std::int32_t(s.top_k),
                            .top_p = float(s.top_p),
                            .min_p = float(s.min_p),
                            .repetition_penalty = float(s.repetition_penalty),
                            .seed = s.seed,
                            .truncate = s.truncate};
  if (!s.stop.empty()) how.stop.push_back(s.stop);

  support::install_interrupt_handler();
  std::vector<std::string> waiting = *prompts;
  std::vector<char> ended(prompts->size(), 0);
  std::size_t current = 0;
  double first = 0;
  const double begin = support::seconds_now();
  const auto show = [&](std::size_t k, std::string_view piece, bool last) {
    if (first == 0) first = support::seconds_now();
    waiting[k] += piece;
    if (last) waiting[k] += '\n', ended[k] = 1;
    for (; current < waiting.size(); ++current) {
      support::print(waiting[current]);
      waiting[current].clear();
      if (ended[current] == 0) break;
    }
    return !support::interrupt_requested;
  };
  if (auto r = generator->generate(*prompts, how, show); support::failed(program, r, code)) return code;
  for (; current < waiting.size(); ++current) support::print(waiting[current] + "\n");  // of an interrupted run
  const double seconds = support::seconds_now() - begin;
  std::fprintf(stderr, "%s: %lld tokens in %.2f s, %.1f tokens/s, the first after %.3f s\n", program.data(),
               static_cast<long long>(generator->drawn()), seconds, double(generator->drawn()) / seconds, first == 0 ? 0.0 : first - begin);
  support::describe_end(program, s.diagnose, generator->batch().loaded());
  return support::interrupt_requested ? support::interrupted : support::success;
}

}  // namespace generate_program
