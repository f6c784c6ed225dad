#pragma once
/// How another program names and lays out the parameters of a model: the vocabulary of the tables in <model>_names.hpp. Names hold `#`
/// for the number of a block.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace isotope::model {

/// A parameter of ours and the stored tensor that it is made of. Several rows with the same `ours` are parts of a packed parameter.
struct stored_name {
  std::string_view ours, theirs;
  bool transposed = false;  // stored as (in, out); ours is (out, in)
  std::int64_t first = 0, count = 1,
               whole = 1;  // theirs is rows [first, first + count) of ours, counted in parts of which ours has `whole`
};

/// A stored copy of another stored tensor, which must hold the same values.
struct stored_copy {
  std::string_view copy, original;
};

/// The end of a stored name, and what older files have in its place.
struct stored_ending {
  std::string_view usual, older;
};

struct stored_names {
  std::string_view prefix;                    // may stand before a name
  std::span<const stored_name> weights;       // all parameters
  std::span<const std::string_view> ignored;  // tensors that hold nothing a model learns
  std::span<const stored_copy> copies;
  std::span<const std::string_view> heads{};  // how the names of tensors begin that a model without some head does not need
  std::span<const stored_ending> endings{};
};

/// Matches a name with a pattern and returns the number of the block; -1 if they differ, 0 where the pattern has no `#`.
constexpr std::int64_t block_of(std::string_view pattern, std::string_view name) {
  const auto at = pattern.find('#');
  if (at == std::string_view::npos) return pattern == name ? 0 : -1;
  if (name.size() < pattern.size() || name.substr(0, at) != pattern.substr(0, at)) return -1;
  std::size_t end = at;
  std::int64_t block = 0;
  for (; end < name.size() && name[end] >= '0' && name[end] <= '9' && end - at < 9; ++end) block = 10 * block + (name[end] - '0');
  if (end == at || (name[at] == '0' && end - at > 1) || name.substr(end) != pattern.substr(at + 1)) return -1;
  return block;
}
static_assert(block_of("h.#.ln_1.bias", "h.12.ln_1.bias") == 12 && block_of("h.#.ln_1.bias", "h.12.ln_2.bias") == -1);
static_assert(block_of("h.#", "h.01") == -1 && block_of("h.#", "h.") == -1 && block_of("wte", "wte") == 0);

/// Puts the number of a block into a pattern.
inline std::string in_block(std::string_view pattern, std::int64_t block) {
  const auto at = pattern.find('#');
  if (at == std::string_view::npos) return std::string(pattern);
  return std::string(pattern.substr(0, at)) + std::to_string(block) + std::string(pattern.substr(at + 1));
}

}  // namespace isotope::model
