#pragma once
/// The bodies of POST /v1/completions and /v1/chat/completions.
/// Source: platform.openai.com/docs/api-reference/completions/create, .../chat/create
#include <isotope/generate/text_request.hpp>
#include <isotope/serve/text_input.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope::serve {

struct chat_message {
  std::string role, content;
};

struct completion_request {
  std::vector<text_input> prompts;     // of /v1/completions
  std::vector<chat_message> messages;  // of /v1/chat/completions
  text_request how;                    // `tokens` is -1 if the request does not say how many, and `seed` counts if `seeded`
  bool seeded = false;
  bool stream = false, include_usage = false;
};

/// The most prompts of one request, and the most messages of a chat.
inline constexpr std::size_t most_prompts = 128, most_messages = 4096, most_stops = 4;

namespace detail {

/// What both kinds of requests have in common. Of what OpenAI's interface offers besides, values that change nothing are accepted, and others refused by name.
inline void read_generation(request_fields& f, completion_request& out) {
  using kind = io::json::kind;
  text_request& how = out.how;
  how.temperature = float(f.number("temperature", 1, 0, 2));
  how.top_p = float(f.number("top_p", 1, 0, 1));
  how.top_k = std::int32_t(f.whole("top_k", 0, 0, std::numeric_limits<std::int32_t>::max()));
  how.min_p = float(f.number("min_p", 0, 0, 1));
  how.repetition_penalty = float(f.number("repetition_penalty", 1, 0.01, 100));
  how.ignore_end = f.boolean("ignore_eos", false);
  out.seeded = f.find("seed") != nullptr;
  how.seed = std::uint64_t(f.whole("seed", 0, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
  out.stream = f.boolean("stream", false);
  if (const io::json* o = f.find("stream_options"); o != nullptr) {
    if (o->is != kind::object) f.refuse("stream_options", request_fields::is(*o), "give an object");
    else if (!out.stream) f.refuse("stream_options", "is for streams", "set stream to true, or leave it out");
    request_fields options(*o);
    out.include_usage = options.boolean("include_usage", false);
    if (!options.good())
      f.refuse("stream_options", options.error()->message.substr(0, options.error()->message.find(';')), "give true or false");
  }
  if (const io::json* s = f.find("stop"); s != nullptr) {
    const auto add = [&](const io::json& x) {
      if (x.is != kind::string) f.refuse("stop", "has " + io::json_fields::text_of(x), "give a string or up to 4 strings");
      else if (!x.text.empty()) how.stop.push_back(x.text);
    };
    if (s->is != kind::array) add(*s);
    else
      for (const io::json& x : s->items) add(x);
    if (how.stop.size() > most_stops) f.refuse("stop", "has " + std::to_string(how.stop.size()) + " strings", "give at most 4");
  }
  const auto one = [](const io::json& v) { return request_fields::is_number(v, 1); };
  const auto zero = [](const io::json& v) { return request_fields::is_number(v, 0); };
  const auto no = [](const io::json& v) { return v.is == kind::boolean && !v.boolean; };
  const auto none = [](const io::json& v) { return v.items.empty() && v.members.empty() && (v.is == kind::array || v.is == kind::object); };
  f.only("n", one, "one continuation of a prompt is computed; prompts may be repeated");
  f.only("best_of", one, "one continuation of a prompt is computed");
  f.only("logprobs", no, "log-probabilities are not computed");
  f.only("top_logprobs", zero, "log-probabilities are not computed");
  f.only("presence_penalty", zero, "this penalty is not computed; repetition_penalty is");
  f.only("frequency_penalty", zero, "this penalty is not computed; repetition_penalty is");
  f.only("logit_bias", none, "logits are not biased");
}

inline std::string content_of(request_fields& f, const io::json* content) {
  using kind = io::json::kind;
  if (content == nullptr || (content->is != kind::string && content->is != kind::array)) {
    f.refuse("messages", "has a message without content", "give each message a string as content");
    return {};
  }
  if (content->is == kind::string) return content->text;
  std::string all;
  for (const io::json& part : content->items) {
    const io::json *type = part.find("type"), *text = part.find("text");
    if (type == nullptr || type->text != "text" || text == nullptr || text->is != kind::string) {
      f.refuse("messages", "has a part of content that is no text", "give parts {\"type\": \"text\", \"text\": ...}");
      return {};
    }
    all += text->text;
  }
  return all;
}

}  // namespace detail

/// @return the error, if there is one. Fields that are not known are ignored.
inline std::optional<api_error> read_completion_request(std::string_view body, std::string_view served, std::int32_t vocab,
                                                        completion_request& out) {
  io::json root;
  if (auto e = parse_body(body, root)) return e;
  request_fields f(root);
  read_model(f, served);
  if (f.find("prompt") == nullptr) out.prompts.emplace_back(std::string());  // an empty text, as OpenAI's interface has it
  else out.prompts = read_texts(f, "prompt", most_prompts, vocab);
  out.how.tokens = f.whole("max_tokens", 16, 1, std::numeric_limits<std::int32_t>::max());
  detail::read_generation(f, out);
  f.only("echo", [](const io::json& v) { return v.is == io::json::kind::boolean && !v.boolean; }, "prompts are not repeated");
  f.only(
      "suffix", [](const io::json& v) { return v.is == io::json::kind::string && v.text.empty(); }, "texts are continued, not filled in");
  return f.error();
}

/// @return the error, if there is one. Roles are system, user and assistant; developer is another word for system.
inline std::optional<api_error> read_chat_request(std::string_view body, std::string_view served, completion_request& out) {
  using kind = io::json::kind;
  io::json root;
  if (auto e = parse_body(body, root)) return e;
  request_fields f(root);
  read_model(f, served);
  const io::json* messages = f.find("messages");
  if (messages == nullptr || messages->is != kind::array || messages->items.empty() || messages->items.size() > most_messages)
    f.refuse("messages", messages == nullptr ? "is missing" : "is not a list of 1 to " + std::to_string(most_messages) + " messages",
             "give a list of {\"role\", \"content\"}");
  for (std::size_t k = 0; f.good() && k < messages->items.size(); ++k) {
    const io::json& m = messages->items[k];
    const io::json* role = m.find("role");
    std::string name = role != nullptr && role->is == kind::string ? role->text : std::string();
    if (name == "developer") name = "system";
    if (name != "system" && name != "user" && name != "assistant")
      f.refuse("messages",
               "message " + std::to_string(k + 1) + " has the role " + (role == nullptr ? "none" : io::json_fields::text_of(*role)),
               "give system, user or assistant");
    out.messages.push_back({std::move(name), detail::content_of(f, m.find("content"))});
  }
  const std::string_view most = f.find("max_completion_tokens") != nullptr ? "max_completion_tokens" : "max_tokens";
  out.how.tokens = f.whole(most, -1, 1, std::numeric_limits<std::int32_t>::max());
  detail::read_generation(f, out);
  const auto none = [](const io::json& v) { return v.is == kind::array && v.items.empty(); };
  f.only("tools", none, "tools are not called");
  f.only("functions", none, "functions are not called");
  f.only(
      "response_format",
      [](const io::json& v) {
        const io::json* t = v.find("type");
        return t != nullptr && t->text == "text";
      },
      "the format of texts is not constrained");
  return f.error();
}

}  // namespace isotope::serve
