// Reads arbitrary bytes as the body of a request, or as a chat template, by the first byte. The result is an error that says what to do, or values in their ranges.
#include <cstddef>
#include <cstdint>
#include <isotope/serve/chat_template.hpp>
#include <isotope/serve/embedding_request.hpp>
#include <isotope/serve/replies.hpp>
#include <isotope/serve/token_request.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace {

using namespace isotope::serve;
constexpr std::int32_t vocab = 100;

void expect(bool holds) {
  if (!holds) __builtin_trap();
}
/// Whether the request was accepted. An error must be JSON of a 4xx, with a fix.
bool accepted_by(const std::optional<api_error>& e) {
  if (!e) return true;
  expect(e->status >= 400 && e->status < 500 && e->message.find("; fix: ") != std::string::npos);
  expect(isotope::io::parse_json(e->body(), "error").ok());
  return false;
}
void expect_texts(const std::vector<text_input>& texts, std::size_t most) {
  expect(!texts.empty() && texts.size() <= most);
  for (const text_input& t : texts)
    if (const auto* ids = std::get_if<token_ids>(&t)) {
      expect(!ids->empty());
      for (const std::int32_t id : *ids) expect(id >= 0 && id < vocab);
    }
}
void expect_generation(const completion_request& q) {
  const isotope::text_request& how = q.how;
  expect(how.tokens >= -1 && how.tokens != 0 && how.temperature >= 0 && how.temperature <= 2 && how.top_p >= 0 && how.top_p <= 1);
  expect(how.min_p >= 0 && how.min_p <= 1 && how.top_k >= 0 && how.repetition_penalty > 0 && how.stop.size() <= most_stops);
  for (const std::string& s : how.stop) expect(!s.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'e') {
    embedding_request q;
    if (accepted_by(read_embedding_request(body, "tiny", vocab, q))) expect_texts(q.texts, most_embedding_texts);
  } else if (data[0] == 'c') {
    completion_request q;
    if (!accepted_by(read_completion_request(body, "tiny", vocab, q))) return 0;
    expect_texts(q.prompts, most_prompts);
    expect_generation(q);
  } else if (data[0] == 'm') {
    completion_request q;
    if (!accepted_by(read_chat_request(body, "tiny", q))) return 0;
    expect(!q.messages.empty() && q.messages.size() <= most_messages);
    for (const chat_message& m : q.messages) expect(m.role == "system" || m.role == "user" || m.role == "assistant");
    expect_generation(q);
    const completion_head head{true, "id", 0, "tiny"};
    const std::string event = completion_chunk(head, 0, q.messages[0].content, isotope::text_end::none, false, false);
    expect(isotope::io::parse_json(std::string_view(event).substr(6, event.size() - 8), "chunk").ok());
  } else if (data[0] == 't') {
    tokenize_request q;
    accepted_by(read_tokenize_request(body, q));
  } else if (data[0] == 'd') {
    token_ids ids;
    if (accepted_by(read_detokenize_request(body, vocab, ids)))
      for (const std::int32_t id : ids) expect(id >= 0 && id < vocab);
  } else {
    const auto t = recognised_template(body, "<s>");
    expect(!t || t->format == chat_format::llama3 || t->bos.empty());
    const std::string_view s = isotope::serve::detail::stripped(body);
    expect(s.size() <= body.size());
  }
  return 0;
}
