#pragma once
/// The JSON of answers, and the chunks of streams.
/// Source: platform.openai.com/docs/api-reference
#include <isotope/generate/text_piece.hpp>
#include <isotope/io/json_text.hpp>

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope::serve {

/// Tokens that a request has used.
struct token_usage {
  std::int64_t prompt = 0, completion = 0;

  std::string json(bool completions) const {
    std::string s = "{\"prompt_tokens\":" + io::number_text(prompt);
    if (completions) s += ",\"completion_tokens\":" + io::number_text(completion);
    return s + ",\"total_tokens\":" + io::number_text(prompt + completion) + "}";
  }
};

/// Base64 of little-endian f32, with padding (RFC 4648, section 4).
inline std::string base64_of(std::span<const float> x) {
  std::string bytes;
  bytes.reserve(x.size() * 4 + 2);
  for (const float v : x) {
    const auto bits = std::bit_cast<std::uint32_t>(v);
    for (int k = 0; k < 4; ++k) bytes += static_cast<char>(bits >> (8 * k) & 0xff);
  }
  const std::size_t padding = (3 - bytes.size() % 3) % 3;
  bytes.append(padding, '\0');  // whole groups: transform_width reads no further
  using boost::archive::iterators::base64_from_binary, boost::archive::iterators::transform_width;
  using encoded = base64_from_binary<transform_width<std::string::const_iterator, 6, 8>>;
  std::string out;
  out.reserve(bytes.size() / 3 * 4);
  std::copy(encoded(bytes.cbegin()), encoded(bytes.cend()), std::back_inserter(out));
  out.replace(out.size() - padding, padding, padding, '=');
  return out;
}

/// {"object": "list", "data": [{"object": "embedding", "index", "embedding"}], "model", "usage"}
/// @param rows  (N, C)
inline std::string embeddings_reply(std::span<const float> rows, std::size_t width, bool base64, std::string_view model, token_usage used) {
  std::string s = "{\"object\":\"list\",\"data\":[";
  for (std::size_t k = 0; k * width < rows.size(); ++k) {
    const auto row = rows.subspan(k * width, width);
    s += (k == 0 ? "" : ",") + std::string("{\"object\":\"embedding\",\"index\":") + io::number_text(k) + ",\"embedding\":";
    if (base64) {
      s += '"' + base64_of(row) + '"';
    } else {
      s += '[';
      for (std::size_t i = 0; i < width; ++i) s += (i == 0 ? "" : ",") + io::number_text(row[i]);
      s += ']';
    }
    s += '}';
  }
  return s + "],\"model\":" + io::json_string(model) + ",\"usage\":" + used.json(false) + "}";
}

/// Who answers a completion: a text completion or a chat.
struct completion_head {
  bool chat = false;
  std::string id;            // cmpl-... or chatcmpl-...
  std::int64_t created = 0;  // seconds since 1970
  std::string model;
};

/// "stop" or "length"; null while a text goes on.
inline std::string finish_reason(text_end end) {
  return end == text_end::stop ? "\"stop\"" : end == text_end::length ? "\"length\"" : "null";
}

namespace detail {

inline std::string head_json(const completion_head& h, bool chunk) {
  return "{\"id\":" + io::json_string(h.id) + ",\"object\":\"" +
         (h.chat ? chunk ? "chat.completion.chunk" : "chat.completion" : "text_completion") +
         "\",\"created\":" + io::number_text(h.created) + ",\"model\":" + io::json_string(h.model);
}

}  // namespace detail

/// A whole answer. @param texts  one for each prompt, with why it ended
inline std::string completion_reply(const completion_head& h, std::span<const std::pair<std::string, text_end>> texts, token_usage used) {
  std::string s = detail::head_json(h, false) + ",\"choices\":[";
  for (std::size_t k = 0; k < texts.size(); ++k) {
    const std::string text = io::json_string(texts[k].first);
    s += std::string(k == 0 ? "" : ",") + "{\"index\":" + io::number_text(k) +
         (h.chat ? ",\"message\":{\"role\":\"assistant\",\"content\":" + text + "}" : ",\"text\":" + text) +
         ",\"logprobs\":null,\"finish_reason\":" + finish_reason(texts[k].second) + "}";
  }
  return s + "],\"usage\":" + used.json(true) + "}";
}

/// An event of a stream.
inline std::string event_of(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }
/// The event after the last one.
inline constexpr std::string_view last_event = "data: [DONE]\n\n";

/// A piece of an answer, as an event. @param first  of a chat: the event says who speaks, and has no text. @param with_usage  the request asked for a last chunk
inline std::string completion_chunk(const completion_head& h, std::size_t index, std::string_view text, text_end end, bool first,
                                    bool with_usage) {
  std::string s = detail::head_json(h, true) + ",\"choices\":[{\"index\":" + io::number_text(index);
  if (!h.chat) s += ",\"text\":" + io::json_string(text);
  else if (first) s += ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}";
  else s += text.empty() && end != text_end::none ? std::string(",\"delta\":{}") : ",\"delta\":{\"content\":" + io::json_string(text) + "}";
  return event_of(s + ",\"logprobs\":null,\"finish_reason\":" + finish_reason(end) + "}]" + (with_usage ? ",\"usage\":null}" : "}"));
}
/// The chunk that `stream_options.include_usage` asks for.
inline std::string usage_chunk(const completion_head& h, token_usage used) {
  return event_of(detail::head_json(h, true) + ",\"choices\":[],\"usage\":" + used.json(true) + "}");
}

/// {"object": "list", "data": [{"id", "object": "model", "created", "owned_by"}]}, and what isotope knows besides.
/// @param numbers  further fields of the model, such as {"context", 1024}
inline std::string model_json(std::string_view id, std::int64_t created, std::span<const std::pair<std::string, std::int64_t>> numbers) {
  std::string s =
      "{\"id\":" + io::json_string(id) + ",\"object\":\"model\",\"created\":" + io::number_text(created) + ",\"owned_by\":\"isotope\"";
  for (const auto& [name, n] : numbers) s += "," + io::json_string(name) + ":" + io::number_text(n);
  return s + "}";
}
inline std::string models_reply(std::string_view model) { return "{\"object\":\"list\",\"data\":[" + std::string(model) + "]}"; }

inline std::string tokenize_reply(std::span<const std::int32_t> ids) {
  std::string s = "{\"tokens\":[";
  for (std::size_t k = 0; k < ids.size(); ++k) s += (k == 0 ? "" : ",") + io::number_text(ids[k]);
  return s + "]}";
}
inline std::string detokenize_reply(std::string_view text) { return "{\"content\":" + io::json_string(text) + "}"; }

}  // namespace isotope::serve
