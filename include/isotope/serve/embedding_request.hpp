#pragma once
/// The body of POST /v1/embeddings.
/// Source: platform.openai.com/docs/api-reference/embeddings/create
#include <isotope/serve/text_input.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace isotope::serve {

struct embedding_request {
  std::vector<text_input> texts;
  bool base64 = false;  // vectors as base64 of little-endian f32, instead of lists of numbers
};

/// The most texts of one request, as OpenAI has it.
inline constexpr std::size_t most_embedding_texts = 2048;

/// @return the error, if there is one. Fields that are not known are ignored, and so is `user`.
inline std::optional<api_error> read_embedding_request(std::string_view body, std::string_view served, std::int32_t vocab,
                                                       embedding_request& out) {
  io::json root;
  if (auto e = parse_body(body, root)) return e;
  request_fields f(root);
  read_model(f, served);
  out.texts = read_texts(f, "input", most_embedding_texts, vocab);
  const std::string format = f.text("encoding_format", "float");
  if (format != "float" && format != "base64")
    f.refuse("encoding_format", "is " + io::json_string(format.substr(0, 100)), "give float or base64");
  out.base64 = format == "base64";
  f.only(
      "dimensions", [](const io::json&) { return false; }, "this model's vectors have one length, and cut ones would mean something else");
  return f.error();
}

}  // namespace isotope::serve
