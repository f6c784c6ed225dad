#pragma once
/// --perplexity: the perplexity of a folder on a text, with the asked format of weights and beside it with weights in f32. --save-quantised: the folder with
/// weights in q8_0 or q4_0.
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/output.hpp"
#include "../support/weight_storage.hpp"
#include "settings.hpp"

#include <isotope/generate/batcher.hpp>
#include <isotope/generate/perplexity.hpp>
#include <isotope/interop/quantised_folder.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/tokenizer_file.hpp>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace generate_program {

using support::storage_for;

/// Opens the folder of --adapters; none without it. @error as interop::open_lora
inline isotope::result<std::optional<isotope::interop::lora_folder>> asked_adapters(const settings& s) {
  std::optional<isotope::interop::lora_folder> none;
  if (s.adapters.empty()) return none;
  auto opened = isotope::interop::open_lora(s.adapters);
  if (!opened) return std::move(opened).error();
  return std::optional(*std::move(opened));
}

inline std::string perplexity_line(const isotope::perplexity& p, std::string_view how) {
  char text[200];
  std::snprintf(text, sizeof text, "perplexity %.4f (%.5f nats a token) with weights in %s: %lld tokens, windows of %d\n", p.value(),
                p.nats, std::string(how).c_str(), static_cast<long long>(p.tokens), p.window);
  return text;
}

/// Prints the perplexity, and what the format of the weights costs.
inline isotope::result<void> print_perplexity(const settings& s, const support::run_options& run) {
  using support::target;
  auto folder = isotope::io::open_model(s.model);
  if (!folder) return std::move(folder).error();
  const auto config = isotope::interop::read_decoder_config(*folder);
  if (!config) return config.error();
  const auto adapters = asked_adapters(s);
  if (!adapters) return adapters.error();
  const auto tokenizer = isotope::io::open_tokenizer(folder->path);
  if (!tokenizer) return tokenizer.error();
  const auto text = isotope::io::read_file(s.perplexity);
  if (!text) return text.error();
  const auto coded = tokenizer->encode(text->text());
  if (!coded) return coded.error();
  auto device = isotope::device<target>::open(run.device<target::backend>());
  if (!device) return std::move(device).error();
  const auto measured = [&](isotope::weight_storage stored, bool a8) {
    return isotope::measure_perplexity<target>(*device, *folder, *config, coded->ids,
                                               {.budget = run.budget(),
                                                .decompose_all = run.diagnose.decompose_all(),
                                                .stored = stored,
                                                .a8 = a8,
                                                .adapters = *adapters ? &**adapters : nullptr});
  };
  const auto stored = storage_for(*folder, run);
  const auto own = measured(stored, run.diagnose.a8);
  if (!own) return own.error();
  const std::string format(name_of(stored == nullptr ? target::precision::type : stored({}, {})));
  support::print(perplexity_line(*own, format + (run.diagnose.a8 ? ", a8" : "")));
  const auto has = isotope::interop::storage_of(*folder);
  if (stored == nullptr || (stored == has && !run.diagnose.a8)) return {};
  const auto wide = measured(nullptr, false);
  if (!wide) return wide.error();
  const std::string wide_format(name_of(target::precision::type));
  support::print(
      perplexity_line(*wide, has == nullptr ? wide_format : wide_format + ", of the folder's " + std::string(name_of(has({}, {})))));
  char cost[100];
  std::snprintf(cost, sizeof cost, "it costs %.4f, %.3f %%\n", own->value() - wide->value(), 100 * (own->value() / wide->value() - 1));
  support::print(cost);
  return {};
}

/// Saves the folder with its weights in blocks.
inline isotope::result<void> save_quantised_folder(const settings& s, const support::run_options& run) {
  using support::target;
  auto folder = isotope::io::open_model(s.model);
  if (!folder) return std::move(folder).error();
  const auto config = isotope::interop::read_decoder_config(*folder);
  if (!config) return config.error();
  const isotope::batcher_options options{.prefill_tokens = {1}, .stored = isotope::weights::named(run.diagnose.stored_weights())};
  return std::visit(
      [&](const auto& c) -> isotope::result<void> {
        const auto plans = isotope::batcher<target>::plans(isotope::interop::inference_size(c), options);
        if (!plans) return plans.error();
        const isotope::plan_view plan = plans->front().plan;
        const auto match = isotope::interop::match_decoder(*folder, c, plan.slots);
        if (!match) return match.error();
        if (auto r = isotope::interop::accept(*folder, *match, false); !r) return r;
        return isotope::interop::save_quantised(s.save_quantised, *folder, *match, plan.slots);
      },
      *config);
}

}  // namespace generate_program
