/// isotope-train: trains a GPT on text, on the backend that the program was compiled for. See --help.
#include "../support/command_line.hpp"
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/version.hpp"
#include "configuration.hpp"
#include "help.hpp"
#include "replay.hpp"
#include "run.hpp"

#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <string>
#include <utility>

namespace {

int guarded_main(int argc, char** argv) {
  auto given = support::command_line(argc, argv);
  if (support::asks_for_help(given)) return support::print(train_program::help_text()), support::success;

  int code = support::success;
  auto configured = train_program::configure(std::move(given));
  if (support::failed(train_program::program, configured, code)) return code;
  if (configured->loaded.has_switch("version"))
    return support::print(support::version_text(train_program::program, isotope::build_info<isotope::selected>)), support::success;
  if (configured->loaded.has_switch("print-config")) return support::print(isotope::config::table(configured->loaded)), support::success;
  if (configured->loaded.value.trace.asked()) return train_program::replay(configured->loaded.value);
  return train_program::run(*std::move(configured));
}

}  // namespace

int main(int argc, char** argv) {
  return support::guarded(train_program::program, [&] { return guarded_main(argc, argv); });
}
