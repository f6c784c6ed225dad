#pragma once
/// The bodies of POST /tokenize and /detokenize: {"content", "add_special", "parse_special"} -> {"tokens"}, and {"tokens"} -> {"content"}, as llama.cpp's server
/// has them.
#include <isotope/serve/text_input.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace isotope::serve {

struct tokenize_request {
  std::string content;
  bool add_special = false;    // with the tokens that the tokenizer puts around a text
  bool parse_special = false;  // special tokens that are written in the text become their ids
};

inline std::optional<api_error> read_tokenize_request(std::string_view body, tokenize_request& out) {
  io::json root;
  if (auto e = parse_body(body, root)) return e;
  request_fields f(root);
  if (f.find("content") == nullptr) f.refuse("content", "is missing", "give a string");
  out.content = f.text("content", {});
  out.add_special = f.boolean("add_special", false);
  out.parse_special = f.boolean("parse_special", false);
  return f.error();
}
inline std::optional<api_error> read_detokenize_request(std::string_view body, std::int32_t vocab, token_ids& out) {
  io::json root;
  if (auto e = parse_body(body, root)) return e;
  request_fields f(root);
  const io::json* tokens = f.find("tokens");
  if (tokens == nullptr || tokens->is != io::json::kind::array)
    f.refuse("tokens", tokens == nullptr ? "is missing" : request_fields::is(*tokens), "give a list of ids");
  else if (!tokens->items.empty()) {
    const auto texts = read_texts(f, "tokens", 0, vocab);
    if (f.good()) out = std::get<token_ids>(texts[0]);
  }
  return f.error();
}

}  // namespace isotope::serve
