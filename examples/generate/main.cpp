/// isotope-generate: text from a trained checkpoint. See --help.
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/interrupt.hpp"
#include "../support/machine_settings.hpp"
#include "../support/model_settings.hpp"
#include "../support/output.hpp"
#include "../support/version.hpp"

#include <isotope/config/canonical.hpp>
#include <isotope/config/load.hpp>
#include <isotope/io/checkpoint_folder.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>
#include <isotope/train/checkpointing.hpp>
#include <isotope/train/sample.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace generate_program {

inline constexpr std::string_view program = "isotope-generate";

struct settings {
  std::string checkpoint;
  std::string prompt;
  std::int64_t tokens = 500;
  double temperature = 0.8;
  std::int64_t top_k = 0;
  double top_p = 1;
  std::uint64_t seed = 1;
  support::machine_settings machine;
};

}  // namespace generate_program

BOOST_HANA_ADAPT_STRUCT(generate_program::settings, checkpoint, prompt, tokens, temperature, top_k, top_p, seed, machine);

namespace generate_program {

const std::vector<std::string> switches = {"version", "help"};

std::string help_text() {
  isotope::config::help_words words;
  words.program = program;
  words.opening = "Continues a prompt with a model that isotope-train has trained.";
  words.closing = "exit codes: 0 done, 1 failed while running, 2 bad usage or checkpoint, 130 interrupted";
  words.meanings = {{"checkpoint", "a folder (its newest checkpoint is taken) or one file, such as DIR/best.safetensors"},
                    {"prompt", "what to continue; without: a line end"},
                    {"tokens", "how many tokens to add"},
                    {"temperature", "below 1 sharper, above 1 flatter, 0 always the likeliest"},
                    {"top_k", "draw among the K likeliest; 0: all"},
                    {"top_p", "draw among the fewest that reach probability P"},
                    {"seed", "the same seed gives the same text"},
                    {"version", "what the program was built from"},
                    {"help", "this text"}};
  words.meanings.insert(support::machine_meanings().begin(), support::machine_meanings().end());
  return isotope::config::flag_help(isotope::config::fields_of(settings{}), switches, words);
}

isotope::result<void> check(const settings& s) {
  const auto refuse = [](std::string flag, std::string fix) {
    return isotope::fail(isotope::errc::invalid_argument, "is out of range", "flag --" + std::move(flag), std::move(fix));
  };
  if (s.checkpoint.empty())
    return isotope::fail(isotope::errc::missing_value, "is missing", "flag --checkpoint", "name a folder or file that isotope-train wrote");
  if (s.tokens < 0) return refuse("tokens", "give 0 or more");
  if (!(s.temperature >= 0)) return refuse("temperature", "give 0 or more");
  if (s.top_k < 0) return refuse("top-k", "give 0 or more");
  if (!(s.top_p > 0 && s.top_p <= 1)) return refuse("top-p", "give a number in (0, 1]");
  if (s.machine.threads < 0) return refuse("threads", "give 0 or more");
  return {};
}

/// A checkpoint from a file, or the newest of a folder.
isotope::result<isotope::io::checkpoint> load(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return isotope::io::load_checkpoint(path);
  auto folder = isotope::io::checkpoint_folder::open(path);
  if (!folder) return std::move(folder).error();
  auto latest = folder->latest();
  if (!latest) return std::move(latest).error();
  return std::move(latest->contents);
}

/// What stands for no prompt: a line end if the vocabulary has one, else its first token.
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
  auto model = isotope::config::from_json<support::model_settings>(checkpoint->state.model, s.checkpoint);
  if (support::failed(program, model, code)) return code;
  auto prompt = s.prompt.empty() ? isotope::result<std::vector<std::int32_t>>(opening(vocab)) : vocab.encode(s.prompt, "prompt");
  if (support::failed(program, prompt, code)) return code;
  std::vector<std::int32_t> tokens = *std::move(prompt);

  auto session = support::gpt_reader::open({model->layers, model->heads, model->width, vocab.size(), model->context, 0},
                                           support::options_of(s.machine));
  if (support::failed(program, session, code)) return code;
  if (auto r = isotope::train::restore_parameters(*session, *checkpoint); support::failed(program, r, code)) return code;

  support::install_interrupt_handler();
  std::string text;
  for (const std::int32_t t : tokens) vocab.decode(t, text);
  support::print(text);
  const isotope::train::sample_options options{s.temperature, s.top_k, s.top_p, s.seed};
  for (std::int64_t i = 0; i < s.tokens && !support::interrupt_requested; ++i) {
    const std::size_t window = std::min(tokens.size(), std::size_t(model->context));
    auto logits = session->logits(std::span<const std::int32_t>(tokens).last(window));
    if (support::failed(program, logits, code)) return code;
    tokens.push_back(isotope::train::sample(*logits, options, std::uint64_t(i)));
    text.clear();
    vocab.decode(tokens.back(), text);
    support::print(text);
  }
  support::print("\n");
  return support::interrupt_requested ? support::interrupted : support::success;
}

int guarded_main(int argc, char** argv) {
  isotope::config::sources given;
  for (int i = 1; i < argc; ++i) given.arguments.emplace_back(argv[i]);
  for (const std::string& argument : given.arguments)
    if (argument == "--help" || argument == "-h") return support::print(help_text()), support::success;
  int code = support::success;
  auto loaded = isotope::config::load<settings>(given, {}, {{}, {}, switches, {}});
  if (support::failed(program, loaded, code)) return code;
  if (loaded->has_switch("version"))
    return support::print(support::version_text(program, isotope::build_info<isotope::selected>)), support::success;
  return run(loaded->value);
}

}  // namespace generate_program

int main(int argc, char** argv) {
  return support::guarded(generate_program::program, [&] { return generate_program::guarded_main(argc, argv); });
}
