#pragma once
/// What every program does with its words and the environment before it starts.
#include "diagnose_settings.hpp"
#include "environment.hpp"
#include "machine_settings.hpp"
#include "plan_reports.hpp"
#include "registry.hpp"
#include "variable_aliases.hpp"

#include <isotope/config/load.hpp>
#include <isotope/core/error.hpp>

#include <string>
#include <utility>
#include <vector>

namespace support {

/// The process's variables and words.
inline isotope::config::sources command_line(int argc, char** argv) {
  isotope::config::sources given;
  given.variables = captured_environment();
  for (int i = 1; i < argc; ++i) given.arguments.emplace_back(argv[i]);
  return given;
}

/// Help is there whatever else is wrong.
inline bool asks_for_help(const isotope::config::sources& given) {
  for (const std::string& argument : given.arguments)
    if (argument == "--help" || argument == "-h") return true;
  return false;
}

/// Variables of the other programs are no mistake: one environment serves them all.
inline isotope::config::rules rules_for(std::vector<std::string> switches, std::string default_size = {}) {
  isotope::config::rules r;
  r.default_size = std::move(default_size);
  r.switches = std::move(switches);
  r.known_variables = every_variable();
  r.aliases = variable_aliases();
  return r;
}

/// @error unknown_key: a variable that has a meaning elsewhere and none here, with the reason
inline isotope::result<void> check_variables(const isotope::config::sources& given) {
  for (const auto& [name, why] : meaningless_variables())
    if (given.variables.contains(name))
      return isotope::fail(isotope::errc::unknown_key, "has no meaning here: " + why, "variable " + name, "unset it");
  return {};
}

/// Ranges of [machine] and [diagnose], and the folders of their reports.
/// @error invalid_argument naming the layer that set the value, the field, the value and the range
template <class C> isotope::result<void> check_run(const isotope::config::loaded<C>& loaded, bool generates = false) {
  auto o = objection_to(loaded.value.machine);
  if (!o) o = objection_to(loaded.value.diagnose, generates);
  if (!o) return check_report_folders(loaded.value.diagnose);
  std::string where = o->key;
  for (const auto& set : loaded.settings)
    if (set.key == o->key) where = set.origin + ": " + o->key;
  return isotope::fail(isotope::errc::invalid_argument, o->what, where, o->fix);
}

}  // namespace support
