/// isotope-info: what this build can do and what it runs on. See --help.
#include "../support/exit_code.hpp"
#include "../support/machine.hpp"
#include "../support/output.hpp"
#include "../support/version.hpp"

#include <isotope/config/flags.hpp>
#include <isotope/config/table.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view program = "isotope-info";
const std::vector<std::string> switches = {"kernels", "version", "help"};

std::string help_text() {
  isotope::config::help_words words;
  words.program = program;
  words.opening = "Prints what the program was built from, the device and the machine that it runs on, and the kernels of its target.";
  words.meanings = {{"kernels", "every kernel: op, precision, set"}, {"version", "what the program was built from"}, {"help", "this text"}};
  return isotope::config::flag_help({}, switches, words);
}

using target = isotope::selected;
using table = std::vector<std::vector<std::string>>;

void rows_of_device(table& rows) {
  auto device = isotope::device<target>::open();
  if (!device) {
    rows.push_back({"device", support::one_line(device.error().line())});
    return;
  }
  const isotope::device_info info = device->info();
  rows.push_back({"device", std::to_string(info.index) + " " + info.name + ", " + std::to_string(info.units) + " threads"});
}

void rows_of_machine(table& rows) {
  const support::machine m = support::this_machine();
  rows.push_back({"processor", m.processor});
  rows.push_back({"threads", std::to_string(m.threads)});
  rows.push_back({"memory", std::to_string(m.memory_bytes >> 20) + " MiB"});
  rows.push_back({"features", m.features});
}

/// One row per op: how many kernels the target finds for it, and the set of the one that runs.
table kernel_summary() {
  table rows = {{"op", "runs", "also there"}};
  for (const isotope::kernel_info& k : isotope::kernel_table<target>) {
    const auto row = std::find_if(rows.begin() + 1, rows.end(), [&](const auto& r) { return r[0] == k.op->name; });
    if (row == rows.end()) rows.push_back({std::string(k.op->name), std::string(k.set), ""});
    else if ((*row)[1] != k.set) (*row)[2] += ((*row)[2].empty() ? "" : ", ") + std::string(k.set);
  }
  std::sort(rows.begin() + 1, rows.end());
  return rows;
}

/// Every kernel of the backend, in every precision.
table all_kernel_rows() {
  table rows = {{"op", "precision", "set"}};
  for (const isotope::kernel_info& k : isotope::all_kernels<target::backend>)
    rows.push_back({std::string(k.op->name), std::string(name_of(k.precision)), std::string(k.set)});
  std::sort(rows.begin() + 1, rows.end());
  return rows;
}

int guarded_main(int argc, char** argv) {
  using support::print;
  const isotope::build& build = isotope::build_info<target>;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (std::find_if(arguments.begin(), arguments.end(), [](const auto& a) { return a == "--help" || a == "-h"; }) != arguments.end())
    return print(help_text()), support::success;
  int code = support::success;
  const auto flags = isotope::config::read_flags(arguments, {}, switches);
  if (support::failed(program, flags, code)) return code;
  const auto has = [&](std::string_view name) {
    return std::find(flags->switches.begin(), flags->switches.end(), name) != flags->switches.end();
  };
  print(support::version_text(program, build));
  if (has("version")) return support::success;

  table rows;
  rows_of_device(rows);
  rows_of_machine(rows);
  print("\n" + isotope::config::columns(rows));
  print("\n" + isotope::config::columns(has("kernels") ? all_kernel_rows() : kernel_summary()));
  if constexpr (requires { target::backend::native_reason; })
    if (std::string_view(target::kernel_set::name) == "native") print("\nnative: " + std::string(target::backend::native_reason) + "\n");
  return support::success;
}

}  // namespace

int main(int argc, char** argv) {
  return support::guarded(program, [&] { return guarded_main(argc, argv); });
}
