// Reads arbitrary bytes as a configuration file, TOML or JSON depending on the first bit, and then as flags. The result is a value or a failure.
#include <cstddef>
#include <cstdint>
#include <isotope/config/canonical.hpp>
#include <isotope/config/load.hpp>
#include <map>
#include <string>
#include <vector>

#include "../config/run_config.hpp"

namespace {

using isotope::test::run_config;
const std::vector<isotope::config::named_size<run_config>> sizes = {
    {"tiny", {.model = {.layers = 2, .heads = 2, .width = 64, .dropout = 0}}}};

void check(const isotope::result<isotope::config::loaded<run_config>>& got) {
  if (!got.ok()) {
    if (got.error().line().empty()) __builtin_trap();
    return;
  }
  // A loaded configuration must be the same after a round trip through its canonical form, unless its text is not UTF-8.
  const std::string once = isotope::config::to_json(got->value);
  const auto back = isotope::config::from_json<run_config>(once, "canonical");
  if (!back.ok() || isotope::config::to_json(*back) != once) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(data + 1, data + size);
  auto file = isotope::config::parse_file(text, (data[0] & 1) != 0 ? "f.toml" : "f.json");
  if (file) check(isotope::config::merge<run_config>(sizes, {*std::move(file)}));

  isotope::config::sources given;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string word = text.substr(at, end - at);
    const std::size_t equals = std::min(word.find('='), word.size());
    if (word.starts_with("ISOTOPE_")) given.variables[word.substr(0, equals)] = word.substr(std::min(equals + 1, word.size()));
    else given.arguments.push_back(word);
    at = end + 1;
  }
  // Inputs that may name a configuration file are skipped, since they would read files of this machine.
  if (text.find("config") == text.npos && text.find("CONFIG") == text.npos) check(isotope::config::load<run_config>(given, sizes));
  return 0;
}
