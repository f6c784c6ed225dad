#pragma once
/// isotope-info plan SIZE BATCH LENGTH: the memory that training a GPT takes, by what is recomputed and by the chunks of its head. It needs no
/// device.
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "settings.hpp"

#include <isotope/config/table.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace info_program {

/// A positive whole number; 0 if the text is none.
inline int size_from(std::string_view text) {
  int n = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  return r.ec == std::errc{} && r.ptr == text.data() + text.size() && n > 0 ? n : 0;
}

/// Prints a row for each number of chunks, with planned GiB in a column for each recompute_policy.
inline int plan_memory(const std::vector<std::string>& arguments) {
  using namespace isotope;
  const auto refuse = [](const std::string& what, const std::string& fix) {
    return support::report(program, isotope::fail(errc::invalid_argument, what, "command line", fix));
  };
  if (arguments.size() != 3)
    return refuse("plan takes a size, a batch and a length, not " + std::to_string(arguments.size()) + " arguments",
                  "isotope-info plan gpt2-124m 32 1024");
  const auto size = std::find_if(model::gpt_sizes.begin(), model::gpt_sizes.end(), [&](const auto& s) { return s.name == arguments[0]; });
  std::string names;
  for (const auto& s : model::gpt_sizes) names += (names.empty() ? "" : ", ") + std::string(s.name);
  if (size == model::gpt_sizes.end()) return refuse("no size is named '" + arguments[0] + "'", "give one of " + names);
  const int batch = size_from(arguments[1]), length = size_from(arguments[2]);
  if (batch == 0 || length == 0 || length > size->size.context)
    return refuse(
        "batch '" + arguments[1] + "' and length '" + arguments[2] + "' are no positive numbers, or the length exceeds the context",
        "give a length of at most " + std::to_string(size->size.context));
  constexpr std::pair<std::string_view, recompute_policy> policies[] = {
      {"none", recompute::none}, {"cheap", recompute::cheap}, {"keep_matmuls", recompute::keep_matmuls}, {"all", recompute::all}};
  std::vector<std::vector<std::string>> rows = {{"head chunks"}};
  for (const auto& [name, policy] : policies) rows[0].push_back(std::string(name));
  for (const std::int64_t chunks : {1, 2, 3, 4, 8}) {
    rows.push_back({std::to_string(chunks)});
    for (const auto& [name, policy] : policies) {
      const auto plan =
          plan_training<selected>(model::gpt_loss_of{size->size, batch, length}, {.recompute = policy, .head = head::in_chunks(chunks)});
      int code = support::success;
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
