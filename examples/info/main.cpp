/// isotope-info: shows what this build can do, what it runs on, and what a file of tensors holds. See --help.
#include "../support/exit_code.hpp"
#include "../support/machine.hpp"
#include "../support/output.hpp"
#include "../support/version.hpp"
#include "calibrate.hpp"
#include "flag_table.hpp"
#include "inspect.hpp"
#include "plan.hpp"
#include "rank.hpp"
#include "settings.hpp"

#include <isotope/config/flags.hpp>
#include <isotope/config/table.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

using info_program::program, info_program::switches;

using target = isotope::selected;
using table = std::vector<std::vector<std::string>>;

/// Lists every device of the backend with what keeps programs from using it, or the failure to open any, with what to install.
void rows_of_devices(table& rows) {
  auto all = isotope::devices<target::backend>();
  const auto device = isotope::device<target>::open();
  // The device that programs would use has been tried by now.
  for (isotope::device_info& d : all)
    if (device && device->info().index == d.index) d = device->info();
  for (const isotope::device_info& d : all) {
    rows.push_back({"device " + std::to_string(d.index), d.name + ", " + std::string(name_of(d.kind)) + ", " + std::to_string(d.units) +
                                                             (target::backend::name == "cpu" ? " threads" : " units")});
    if (!d.problem.empty()) rows.push_back({"  problem", d.problem});
    if (!d.driver.empty()) rows.push_back({"  driver", d.driver});
    for (const auto& f : d.facts) rows.push_back({"  " + f.name, f.value});
  }
  if (device) rows.push_back({"default", "device " + std::to_string(device->info().index)});
  else rows.push_back({all.empty() ? "devices" : "default", support::one_line(device.error().line())});
}

void rows_of_machine(table& rows) {
  const support::machine m = support::this_machine();
  rows.push_back({"processor", m.processor});
  rows.push_back({"threads", std::to_string(m.threads)});
  rows.push_back({"memory", std::to_string(m.memory_bytes >> 20) + " MiB"});
  rows.push_back({"features", m.features});
}

/// Prints one row per op: how many kernels the target finds for it, and the set of the one that runs.
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

/// Lists every kernel of the backend, in every precision.
table all_kernel_rows() {
  table rows = {{"op", "precision", "set"}};
  for (const isotope::kernel_info& k : isotope::all_kernels<target::backend>)
    rows.push_back({std::string(k.op->name), std::string(name_of(k.precision)), std::string(k.set)});
  std::sort(rows.begin() + 1, rows.end());
  return rows;
}

/// Lists every variant of separately compiled kernel sources: its source and flags, the ability that it needs and the size of its code. Prints
/// nothing for a backend without such sources.
table variant_rows() {
  const auto variants = target::backend::variants();
  if (variants.empty()) return {};
  table rows = {{"code", "source", "compiled with", "needs", "bytes"}};
  for (const isotope::code_variant& v : variants)
    rows.push_back({std::string(v.name), std::string(v.source), std::string(v.flags), std::string(v.needs),
                    v.missing.empty() ? std::to_string(v.bytes) : "the build lacks " + std::string(v.missing)});
  return rows;
}

int guarded_main(int argc, char** argv) {
  using support::print;
  const isotope::build& build = isotope::build_info<target>;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (std::find_if(arguments.begin(), arguments.end(), [](const auto& a) { return a == "--help" || a == "-h"; }) != arguments.end())
    return print(isotope::config::flag_help({}, switches, info_program::words_of_help())), support::success;
  if (!arguments.empty() && arguments[0] == "inspect") return info_program::inspect({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "calibrate") return info_program::calibrate({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "plan") return info_program::plan_memory({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "rank") return info_program::rank({arguments.begin() + 1, arguments.end()});
  int code = support::success;
  const auto flags = isotope::config::read_flags(arguments, {}, switches);
  if (support::failed(program, flags, code)) return code;
  const auto has = [&](std::string_view name) {
    return std::find(flags->switches.begin(), flags->switches.end(), name) != flags->switches.end();
  };
  if (has("flags")) return print(info_program::flag_table()), support::success;
  print(support::version_text(program, build));
  if (has("version")) return support::success;

  table rows;
  rows_of_devices(rows);
  rows_of_machine(rows);
  print("\n" + isotope::config::columns(rows));
  print("\n" + isotope::config::columns(has("kernels") ? all_kernel_rows() : kernel_summary()));
  if (const table variants = variant_rows(); has("kernels") && !variants.empty()) print("\n" + isotope::config::columns(variants));
  if (std::string_view(target::kernel_set::name) == "native") print("\nnative: " + std::string(target::backend::native_reason) + "\n");
  return support::success;
}

}  // namespace

int main(int argc, char** argv) {
  return support::guarded(program, [&] { return guarded_main(argc, argv); });
}
