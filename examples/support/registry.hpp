#pragma once
/// Every flag and variable of every program, in one table: what isotope-info --flags prints, and what no program takes for a mistake.
#include "../generate/settings.hpp"
#include "../info/settings.hpp"
#include "../mlp/settings.hpp"
#include "../parity/settings.hpp"
#include "../serve/settings.hpp"
#include "../train/help.hpp"
#include "diagnose_settings.hpp"
#include "variable_aliases.hpp"

#include <isotope/config/arguments.hpp>
#include <isotope/config/flags.hpp>
#include <isotope/config/reflect.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace support {

struct registered_program {
  std::string name;
  std::vector<isotope::config::field> fields;
  std::vector<std::string> switches;
  isotope::config::help_words words;
};

inline std::vector<registered_program> registered_programs() {
  using isotope::config::field_kind, isotope::config::fields_of;
  auto generate = fields_of(generate_program::settings{}), mlp = fields_of(mlp_program::settings{}),
       serve = fields_of(serve_program::settings{});
  return {{"train", train_program::all_fields(), train_program::switches, train_program::words_of_help()},
          {"generate", std::move(generate), generate_program::switches, generate_program::words_of_help()},
          {"serve", std::move(serve), serve_program::switches, serve_program::words_of_help()},
          {"parity", parity_program::all_fields(), parity_program::switches, parity_program::words_of_help()},
          {"mlp", std::move(mlp), mlp_program::switches, mlp_program::words_of_help()},
          {"info", {}, info_program::switches, info_program::words_of_help()}};
}

/// Variables of other transformer programs on GPUs that have no meaning in these, and why. They are refused: a switch that does nothing
/// would be taken for one that changes nothing.
inline const std::map<std::string, std::string>& meaningless_variables() {
  static const std::map<std::string, std::string> all = {
      {"ISOTOPE_COOP_NO_F32ACC", "matrix units always add in f32"},
      {"ISOTOPE_COOP_LARGE_N", "tiles are chosen by cost, for every N"},
      {"ISOTOPE_COOP_LOAD_T", "tiles are read in either memory order, without a transposed copy"},
      {"ISOTOPE_NO_COOP_F32", "f32 products never run on matrix units"},
      {"ISOTOPE_FORCE_COOP_F32", "no device has matrix units for f32 operands"},
      {"ISOTOPE_NO_PACKED_ATTN", "models choose: attention(qkv, heads) or attention(q, k, v, heads); kernels read either by strides"},
      {"ISOTOPE_ARENA_ALIGN", "values start at multiples of 256 bytes, a constant of the planner"},
  };
  return all;
}

/// Every spelling of every variable of every program.
inline std::vector<std::string> every_variable() {
  std::vector<std::string> out;
  for (const registered_program& p : registered_programs())
    for (const auto& f : p.fields)
      for (std::string& v : isotope::config::variables_of(f, p.fields, variable_aliases())) out.push_back(std::move(v));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace support
