#pragma once
/// isotope-info plan SIZE BATCH LENGTH: the memory that training a GPT takes, by what is recomputed and by the chunks of its head. It needs no
/// device.
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "settings.hpp"
#include "step_size.hpp"

#include <isotope/config/table.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace info_program {

/// Prints a row for each number of chunks, with planned GiB in a column for each recompute_policy.
inline int plan_memory(const std::vector<std::string>& arguments) {
  using namespace isotope;
  if (arguments.size() != 3)
    return support::report(program, fail(errc::invalid_argument,
                                         "plan takes a size, a batch and a length, not " + std::to_string(arguments.size()) + " arguments",
                                         "command line", "isotope-info plan gpt2-124m 32 1024"));
  int code = support::success;
  const auto step = step_size_from(std::span(arguments).first<3>());
  if (support::failed(program, step, code)) return code;
  constexpr std::pair<std::string_view, recompute_policy> policies[] = {
      {"none", recompute::none}, {"cheap", recompute::cheap}, {"keep_matmuls", recompute::keep_matmuls}, {"all", recompute::all}};
  std::vector<std::vector<std::string>> rows = {{"head chunks"}};
  for (const auto& [name, policy] : policies) rows[0].push_back(std::string(name));
  for (const std::int64_t chunks : {1, 2, 3, 4, 8}) {
    rows.push_back({std::to_string(chunks)});
    for (const auto& [name, policy] : policies) {
      const auto plan = plan_training<selected>(step->loss(), {.recompute = policy, .head = head::in_chunks(chunks)});
      if (support::failed(program, plan, code)) return code;
      char text[32];
      std::snprintf(text, sizeof text, "%.2f", double(plan->totals.bytes) / (1 << 30));
      rows.back().push_back(text);
    }
  }
  support::print("planned GiB of " + arguments[0] + ", batch " + arguments[1] + ", length " + arguments[2] +
                 ", by --head-chunks and --recompute\n\n" + isotope::config::columns(rows));
  return support::success;
}

}  // namespace info_program
