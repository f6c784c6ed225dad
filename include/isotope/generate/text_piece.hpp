#pragma once
/// What a token adds to a text that is being continued.
#include <isotope/core/error.hpp>

#include <cstdint>
#include <string_view>

namespace isotope {

/// Why a text has ended: it goes on; an end-of-text token or a stop string; its number of tokens; an id that the tokenizer lacks.
enum class text_end : std::uint8_t { none, stop, length, failed };

/// What a drawn token adds to a text.
struct text_piece {
  std::string_view text;  // whole characters; empty while they wait for further tokens
  text_end end = text_end::none;
  std::int64_t drawn = 0;          // tokens of this text, this one included
  const failure* wrong = nullptr;  // of a failed text
  bool last() const { return end != text_end::none; }
};

}  // namespace isotope
