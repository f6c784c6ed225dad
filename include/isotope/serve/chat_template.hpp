#pragma once
/// Chats as token ids, for the templates of Llama 3 and ChatML. A template is a program in the language Jinja; it is recognised by its exact text, and any other
/// one is refused, since a wrong frame makes a model answer badly without an error.
#include <isotope/io/file.hpp>
#include <isotope/io/model_folder.hpp>
#include <isotope/io/tokenizer.hpp>
#include <isotope/io/unicode.hpp>
#include <isotope/serve/completion_request.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope::serve {

enum class chat_format : std::uint8_t { llama3, chatml };

/// A recognised template.
struct chat_template {
  chat_format format = chat_format::chatml;
  std::string bos;                    // before the first message; Llama 3's
  std::optional<std::string> system;  // the message that ChatML's templates of some models put before a chat without one
};

namespace detail {

// The texts of templates in which line ends inside strings are written as \n.
inline constexpr std::string_view llama3_chat =
    R"({% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %})";
inline constexpr std::string_view llama3_open = R"({{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }})";
inline constexpr std::string_view if_open = "{% if add_generation_prompt %}", end_if = "{% endif %}";
inline constexpr std::string_view chatml_default =
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}";
inline constexpr std::string_view chatml_loop = "{% for message in messages %}";
inline constexpr std::string_view chatml_system_begin =
    R"({% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n)";
inline constexpr std::string_view chatml_system_end = R"(<|im_end|>\n' }}{% endif %})";
inline constexpr std::string_view chatml_rest =
    R"({{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

/// Removes a beginning; false if the text has another one.
inline bool take(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

/// Without white space at both ends, as Python's str.strip.
inline std::string_view stripped(std::string_view s) {
  const auto blank = [](std::uint32_t c) {
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
  };
  while (!s.empty()) {
    const auto p = io::decode_utf8(s, 0);
    if (p.bytes == 0 || !blank(p.code)) break;
    s.remove_prefix(p.bytes);
  }
  while (!s.empty()) {
    std::size_t at = s.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(s[at]) & 0xc0) == 0x80) --at;
    const auto p = io::decode_utf8(s, at);
    if (p.bytes != s.size() - at || !blank(p.code)) break;
    s.remove_suffix(p.bytes);
  }
  return s;
}

}  // namespace detail

/// Recognises a template by its text.
inline std::optional<chat_template> recognised_template(std::string_view jinja, std::string bos) {
  std::string text;  // a line end in a string is the same as \n
  for (const char c : jinja) c == '\n' ? text += "\\n" : text += c;
  std::string_view rest = text;
  if (detail::take(rest, detail::llama3_chat)) {
    if (rest != detail::llama3_open &&
        rest != std::string(detail::if_open) + std::string(detail::llama3_open) + std::string(detail::end_if))
      return std::nullopt;
    return chat_template{chat_format::llama3, std::move(bos), std::nullopt};
  }
  chat_template made;
  detail::take(rest, detail::chatml_default);
  if (!detail::take(rest, detail::chatml_loop)) return std::nullopt;
  if (detail::take(rest, detail::chatml_system_begin)) {
    const std::size_t end = rest.find(detail::chatml_system_end);
    if (end == rest.npos || rest.substr(0, end).find_first_of("'\\{}<") != rest.npos) return std::nullopt;
    made.system = std::string(rest.substr(0, end));
    rest.remove_prefix(end + detail::chatml_system_end.size());
  }
  return rest == detail::chatml_rest ? std::optional(made) : std::nullopt;
}

/// The template of a folder: chat_template.jinja, or `chat_template` of tokenizer_config.json. None if the folder has none, or one that is not recognised; `why`
/// says which. @error bad_format: tokenizer_config.json is damaged
inline result<std::optional<chat_template>> read_chat_template(const std::string& folder, std::string& why) {
  std::optional<chat_template> none;
  std::string jinja, bos;
  const std::string config = folder + "/tokenizer_config.json", file = folder + "/chat_template.jinja";
  if (io::detail::is_there(config)) {
    auto root = io::detail::read_object(config, 16 << 20);
    if (!root) return std::move(root).error();
    if (const io::json* t = root->find("bos_token"); t != nullptr) {
      const io::json* content = t->is == io::json::kind::object ? t->find("content") : t;
      if (content != nullptr && content->is == io::json::kind::string) bos = content->text;
    }
    if (const io::json* t = root->find("chat_template"); t != nullptr && t->is == io::json::kind::string) jinja = t->text;
    else if (t != nullptr && t->is == io::json::kind::array)
      for (const io::json& each : t->items)
        if (const io::json *name = each.find("name"), *text = each.find("template");
            name != nullptr && text != nullptr && name->text == "default")
          jinja = text->text;
  }
  if (io::detail::is_there(file)) {
    auto bytes = io::read_file(file);
    if (!bytes) return std::move(bytes).error();
    jinja = bytes->text();
    if (jinja.ends_with('\n')) jinja.pop_back();  // as Jinja drops it
  }
  why = jinja.empty() ? "the model has no chat template" : "the model's chat template is neither Llama 3's nor ChatML";
  if (jinja.empty()) return none;
  return recognised_template(jinja, std::move(bos));
}

/// The ids of a chat up to the place where the assistant's answer begins. Words of messages never become special tokens.
/// @error model_mismatch: the tokenizer lacks a special token of the template
inline result<std::vector<std::int32_t>> chat_ids(const chat_template& t, std::span<const chat_message> messages,
                                                  const io::tokenizer& words) {
  std::vector<std::int32_t> ids;
  std::string run;
  failure wrong;
  const auto flush = [&] {
    const auto made = words.encode(run, {.special = io::specials::plain, .framed = false});
    if (made) ids.insert(ids.end(), made->ids.begin(), made->ids.end());
    else if (wrong.what.empty()) wrong = made.error();
    run.clear();
  };
  const auto special = [&](std::string_view token) {
    flush();
    const std::int32_t id = words.id_of(token);
    if (id >= 0) ids.push_back(id);
    else if (wrong.what.empty())
      wrong = fail(errc::model_mismatch, "lacks " + std::string(token) + ", which the chat template writes", "the tokenizer",
                   "fetch the folder again");
  };
  const auto open = [&](std::string_view role) {
    special(t.format == chat_format::llama3 ? "<|start_header_id|>" : "<|im_start|>");
    run += role;
    if (t.format == chat_format::llama3) special("<|end_header_id|>"), run += "\n\n";
    else run += '\n';
  };
  const auto message = [&](std::string_view role, std::string_view content) {
    open(role);
    run += t.format == chat_format::llama3 ? detail::stripped(content) : content;
    special(t.format == chat_format::llama3 ? "<|eot_id|>" : "<|im_end|>");
    if (t.format == chat_format::chatml) run += '\n';
  };
  if (!t.bos.empty()) special(t.bos);
  if (t.system && !messages.empty() && messages[0].role != "system") message("system", *t.system);
  for (const chat_message& m : messages) message(m.role, m.content);
  open("assistant");
  flush();
  if (!wrong.what.empty()) return wrong;
  return ids;
}
/// The token that ends an answer, or -1.
inline std::int32_t chat_end(const chat_template& t, const io::tokenizer& words) {
  return words.id_of(t.format == chat_format::llama3 ? "<|eot_id|>" : "<|im_end|>");
}

}  // namespace isotope::serve
