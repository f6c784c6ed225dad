/// isotope-generate: generates text from a trained checkpoint, or from a folder of Hugging Face. See --help.
#include "../support/command_line.hpp"
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/interrupt.hpp"
#include "../support/model_settings.hpp"
#include "../support/output.hpp"
#include "../support/version.hpp"
#include "folder.hpp"
#include "settings.hpp"

#include <isotope/config/canonical.hpp>
#include <isotope/config/load.hpp>
#include <isotope/io/checkpoint_folder.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>
#include <isotope/train/checkpointing.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace generate_program {

std::string help_text() { return isotope::config::flag_help(isotope::config::fields_of(settings{}), switches, words_of_help()); }

isotope::result<void> check(const settings& s) {
  const auto refuse = [](std::string flag, std::string fix) {
    return isotope::fail(isotope::errc::invalid_argument, "is out of range", "flag --" + std::move(flag), std::move(fix));
  };
  const auto fail = [](isotope::errc code, std::string what, std::string flag, std::string fix) {
    return isotope::fail(code, std::move(what), "flag --" + std::move(flag), std::move(fix));
  };
  if (s.checkpoint.empty() && s.model.empty())
    return fail(isotope::errc::missing_value, "is missing", "checkpoint",
                "name a folder or file that isotope-train wrote, or a folder of Hugging Face with --model");
  if (!s.checkpoint.empty() && !s.model.empty())
    return fail(isotope::errc::invalid_argument, "does not go with --checkpoint", "model", "give one of them");
  const std::pair<const char*, bool> of_folders[] = {{"prompts", !s.prompts.empty()},
                                                     {"min-p", s.min_p != 0},
                                                     {"repetition-penalty", s.repetition_penalty != 1},
                                                     {"stop", !s.stop.empty()},
                                                     {"truncate", s.truncate},
                                                     {"adapters", !s.adapters.empty()},
                                                     {"perplexity", !s.perplexity.empty()},
                                                     {"save-quantised", !s.save_quantised.empty()}};
  for (const auto& [flag, given] : of_folders)
    if (given && s.model.empty()) return fail(isotope::errc::invalid_argument, "is for --model", flag, "leave it out");
  if (!s.save_quantised.empty() && s.diagnose.stored_weights() != "q8_0" && s.diagnose.stored_weights() != "q4_0")
    return fail(isotope::errc::invalid_argument, "needs a format of blocks", "save-quantised", "give --weights q8_0 or q4_0, too");
  if (!s.save_quantised.empty() && !s.adapters.empty())
    return fail(isotope::errc::invalid_argument, "does not go with --save-quantised", "adapters",
                "apply them first, by isotope-train --save-hf");
  if (!s.save_quantised.empty() && !s.perplexity.empty())
    return fail(isotope::errc::invalid_argument, "does not go with --save-quantised", "perplexity", "give one of them");
  if (!(s.min_p >= 0 && s.min_p <= 1)) return refuse("min-p", "give a number in [0, 1]");
  if (!(s.repetition_penalty > 0)) return refuse("repetition-penalty", "give a number above 0, 1 for none");
  if (s.slots < 1 || s.slots > 4096) return refuse("slots", "give 1 to 4096");
  if (s.top_k > std::numeric_limits<std::int32_t>::max()) return refuse("top-k", "give at most 2147483647");
  if (s.tokens < 0) return refuse("tokens", "give 0 or more");
  if (!(s.temperature >= 0)) return refuse("temperature", "give 0 or more");
  if (s.top_k < 0) return refuse("top-k", "give 0 or more");
  if (constexpr auto own = support::target::precision::type; !s.diagnose.stores_in(own))
    return isotope::fail(isotope::errc::invalid_argument, "is for f32 builds, this one stores weights in " + std::string(name_of(own)),
                         s.diagnose.f16_weights ? "flag --f16-weights" : "flag --weights", "leave it out");
  if (!(s.top_p > 0 && s.top_p <= 1)) return refuse("top-p", "give a number in (0, 1]");
  return {};
}

/// Opens a checkpoint from a file, or the newest one of a folder.
isotope::result<isotope::io::checkpoint> load(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return isotope::io::load_checkpoint(path);
  auto latest = isotope::io::checkpoint_folder(path).latest();
  if (!latest) return std::move(latest).error();
  return std::move(latest->contents);
}

/// Replaces an empty prompt: a line end if the vocabulary has one, else its first token.
std::vector<std::int32_t> opening(const isotope::io::vocabulary& vocab) {
  const auto line_end = vocab.encode("\n");
  return line_end ? *line_end : std::vector<std::int32_t>{0};
}

int run(const settings& s) {
  int code = support::success;
  if (auto r = check(s); support::failed(program, r, code)) return code;
  auto checkpoint = load(s.checkpoint);
  if (support::failed(program, checkpoint, code)) return code;
  const isotope::io::vocabulary vocab = checkpoint->state.vocab;
  if (const std::string& of = checkpoint->state.model; of.starts_with("{\"lora\"") || of.starts_with("{\"decoder\"")) {
    const isotope::result<void> refused =
        isotope::fail(isotope::errc::model_mismatch,
                      "holds " + std::string(of.starts_with("{\"lora\"") ? "adapters beside the weights" : "a Llama or Qwen"), s.checkpoint,
                      "save it with isotope-train --resume --save-hf DIR, and give --model DIR");
    return support::failed(program, refused, code), code;
  }
  auto model = isotope::config::from_json<support::model_settings>(checkpoint->state.model, s.checkpoint);
  if (support::failed(program, model, code)) return code;
  auto prompt = s.prompt.empty() ? isotope::result<std::vector<std::int32_t>>(opening(vocab)) : vocab.encode(s.prompt, "prompt");
  if (support::failed(program, prompt, code)) return code;
  const std::vector<std::int32_t> tokens = *std::move(prompt);

  const support::run_options options{program, s.machine, s.diagnose};
  auto generator = support::open_generator({model->layers, model->heads, model->width, vocab.size(), model->context, 0}, options);
  if (support::failed(program, generator, code)) return code;
  if (auto r = isotope::train::restore_parameters(*generator, *checkpoint); support::failed(program, r, code)) return code;
  // Kernels may depend on the parameters.
  if (auto r = support::write_plan_reports(program, s.diagnose, generator->loaded()); support::failed(program, r, code)) return code;

  support::install_interrupt_handler();
  std::string text;
  for (const std::int32_t t : tokens) vocab.decode(t, text);
  support::print(text);
  const isotope::generation_request request{tokens, s.tokens, {s.temperature, s.top_k, s.top_p, s.seed}};
  const auto show = [&](std::size_t, std::int32_t token) {
    text.clear();
    vocab.decode(token, text);
    support::print(text);
    return !support::interrupt_requested;
  };
  if (auto r = generator->generate({&request, 1}, show); support::failed(program, r, code)) return code;
  support::print("\n");
  support::describe_end(program, s.diagnose, generator->loaded());
  return support::interrupt_requested ? support::interrupted : support::success;
}

int guarded_main(int argc, char** argv) {
  const auto given = support::command_line(argc, argv);
  if (support::asks_for_help(given)) return support::print(help_text()), support::success;
  int code = support::success;
  if (auto r = support::check_variables(given); support::failed(program, r, code)) return code;
  auto loaded = isotope::config::load<settings>(given, {}, support::rules_for(switches));
  if (support::failed(program, loaded, code)) return code;
  if (loaded->has_switch("version"))
    return support::print(support::version_text(program, isotope::build_info<isotope::selected>)), support::success;
  if (auto r = support::check_run(*loaded, true); support::failed(program, r, code)) return code;
  if (!loaded->value.model.empty()) {
    if (auto r = check(loaded->value); support::failed(program, r, code)) return code;
    const settings& s = loaded->value;
    const support::run_options options{program, s.machine, s.diagnose};
    if (s.perplexity.empty() && s.save_quantised.empty()) return run_folder(s, prompts_among(given.arguments));
    const auto done = s.perplexity.empty() ? save_quantised_folder(s, options) : print_perplexity(s, options);
    support::failed(program, done, code);
    return code;
  }
  return run(loaded->value);
}

}  // namespace generate_program

int main(int argc, char** argv) {
  return support::guarded(generate_program::program, [&] { return generate_program::guarded_main(argc, argv); });
}
