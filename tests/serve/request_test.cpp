// Requests of OpenAI's interface: what is read, and what each refusal says.
#include <isotope/serve/completion_request.hpp>
#include <isotope/serve/embedding_request.hpp>
#include <isotope/serve/token_request.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace request_test {

using namespace isotope::serve;

constexpr std::int32_t vocab = 100;
std::optional<api_error> embedding(std::string_view body, embedding_request& r) { return read_embedding_request(body, "tiny", vocab, r); }
std::optional<api_error> completion(std::string_view body, completion_request& r) {
  return read_completion_request(body, "tiny", vocab, r);
}
std::optional<api_error> chat(std::string_view body, completion_request& r) { return read_chat_request(body, "tiny", r); }

/// Expects a 400 of this field, whose message has the part and ends in a fix.
void refuses(const std::optional<api_error>& e, std::string_view param, std::string_view part) {
  ASSERT_TRUE(e) << part;
  EXPECT_EQ(e->status, param == "model" ? 404 : 400);
  EXPECT_EQ(e->param, param) << e->message;
  EXPECT_NE(e->message.find(part), std::string::npos) << e->message;
  EXPECT_NE(e->message.find("; fix: "), std::string::npos) << e->message;
}

TEST(embedding_request, takes_a_string_strings_ids_and_lists_of_ids) {
  embedding_request r;
  ASSERT_FALSE(embedding(R"({"input": "a cat", "model": "tiny", "user": "u", "unknown": [1]})", r));
  ASSERT_EQ(r.texts.size(), 1u);
  EXPECT_EQ(std::get<std::string>(r.texts[0]), "a cat");
  EXPECT_FALSE(r.base64);
  ASSERT_FALSE(embedding(R"({"input": ["a", ""], "encoding_format": "base64", "dimensions": null})", r));
  ASSERT_EQ(r.texts.size(), 2u);
  EXPECT_EQ(std::get<std::string>(r.texts[1]), "");
  EXPECT_TRUE(r.base64);
  ASSERT_FALSE(embedding(R"({"input": [3, 99]})", r));
  ASSERT_EQ(r.texts.size(), 1u);
  EXPECT_EQ(std::get<token_ids>(r.texts[0]), (token_ids{3, 99}));
  ASSERT_FALSE(embedding(R"({"input": [[3], [0, 1]]})", r));
  EXPECT_EQ(std::get<token_ids>(r.texts[1]), (token_ids{0, 1}));
}
TEST(embedding_request, refuses_with_the_field_and_a_fix) {
  embedding_request r;
  refuses(embedding("", r), "", "has no body");
  refuses(embedding("{\"input\": ", r), "", "not JSON");
  refuses(embedding("{\"input\": \"a\", \"input\": \"b\"}", r), "", "stands twice");
  refuses(embedding("[]", r), "", "is an array, not an object");
  refuses(embedding(R"({})", r), "input", "is missing");
  refuses(embedding(R"({"input": 5})", r), "input", "has 5");
  refuses(embedding(R"({"input": []})", r), "input", "empty list");
  refuses(embedding(R"({"input": [[]]})", r), "input", "empty list");
  refuses(embedding(R"({"input": ["a", 5]})", r), "input", "has 5");
  refuses(embedding(R"({"input": [5, "a"]})", r), "input", "has \"a\"");
  refuses(embedding(R"({"input": [true]})", r), "input", "has true");
  refuses(embedding(R"({"input": [100]})", r), "input", "has the id 100, and the model has 100 tokens");
  refuses(embedding(R"({"input": [-1]})", r), "input", "the id -1");
  refuses(embedding(R"({"input": [1.5]})", r), "input", "the id 1.5");
  refuses(embedding(R"({"input": "a", "encoding_format": "hex"})", r), "encoding_format", "is \"hex\"");
  refuses(embedding(R"({"input": "a", "dimensions": 64})", r), "dimensions", "is 64");
  const auto other = embedding(R"({"input": "a", "model": "gpt-5"})", r);
  refuses(other, "model", "\"gpt-5\", which is not served");
  EXPECT_EQ(other->code, "model_not_found");
  std::string many = "{\"input\": [\"a\"";
  for (int i = 0; i < 2048; ++i) many += ",\"a\"";
  refuses(embedding(many + "]}", r), "input", "2049 texts, more than 2048");
  std::string values = "{\"input\": [1";
  for (std::size_t i = 0; i < most_request_values; ++i) values += ",1";
  refuses(embedding(values + "]}", r), "", "too many values");
  refuses(embedding(R"({"input": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]})", r), "", "not JSON");
}
TEST(completion_request, reads_how_a_text_is_continued) {
  completion_request r;
  ASSERT_FALSE(completion(
      R"({"prompt": "To be", "max_tokens": 7, "temperature": 0.5, "top_p": 0.25, "seed": -1, "stop": ["\n", "", "END"], "stream": true,
    "stream_options": {"include_usage": true}, "n": 1, "logprobs": null, "echo": false, "presence_penalty": 0, "logit_bias": {}, "top_k": 5, "min_p": 0.125})",
      r));
  EXPECT_EQ(std::get<std::string>(r.prompts.at(0)), "To be");
  EXPECT_EQ(r.how.tokens, 7);
  EXPECT_EQ(r.how.temperature, 0.5f);
  EXPECT_EQ(r.how.top_p, 0.25f);
  EXPECT_EQ(r.how.top_k, 5);
  EXPECT_EQ(r.how.min_p, 0.125f);
  EXPECT_TRUE(r.seeded);
  EXPECT_EQ(r.how.seed, ~std::uint64_t(0));
  EXPECT_EQ(r.how.stop, (std::vector<std::string>{"\n", "END"}));
  EXPECT_TRUE(r.stream && r.include_usage);

  completion_request plain;
  ASSERT_FALSE(completion("{}", plain));
  EXPECT_EQ(std::get<std::string>(plain.prompts.at(0)), "") << "an empty prompt";
  EXPECT_EQ(plain.how.tokens, 16);
  EXPECT_EQ(plain.how.temperature, 1.0f);
  EXPECT_FALSE(plain.seeded || plain.stream || plain.include_usage);
  completion_request lists;
  ASSERT_FALSE(completion(R"({"prompt": [[1, 2], [3]], "stop": "x"})", lists));
  EXPECT_EQ(lists.prompts.size(), 2u);
  EXPECT_EQ(lists.how.stop, std::vector<std::string>{"x"});
}
TEST(completion_request, refuses_what_it_does_not_compute) {
  const auto refused = [](std::string_view body, std::string_view param, std::string_view part) {
    completion_request r;
    refuses(completion(body, r), param, part);
  };
  refused(R"({"temperature": 2.5})", "temperature", "is 2.5; fix: give a number from 0 to 2");
  refused(R"({"temperature": "hot"})", "temperature", "is \"hot\"");
  refused(R"({"top_p": -1})", "top_p", "is -1");
  refused(R"({"max_tokens": 0})", "max_tokens", "is 0");
  refused(R"({"max_tokens": 1e3})", "max_tokens", "is 1e3");
  refused(R"({"seed": 1.5})", "seed", "is 1.5");
  refused(R"({"n": 2})", "n", "is 2");
  refused(R"({"best_of": 3})", "best_of", "is 3");
  refused(R"({"logprobs": 5})", "logprobs", "log-probabilities are not computed");
  refused(R"({"echo": true})", "echo", "is true");
  refused(R"({"suffix": "end"})", "suffix", "not filled in");
  refused(R"({"presence_penalty": 0.5})", "presence_penalty", "is 0.5");
  refused(R"({"logit_bias": {"5": 1}})", "logit_bias", "is an object");
  refused(R"({"stop": ["a", "b", "c", "d", "e"]})", "stop", "5 strings");
  refused(R"({"stop": [1]})", "stop", "has 1");
  refused(R"({"stream": "yes"})", "stream", "is \"yes\"");
  refused(R"({"stream_options": {"include_usage": true}})", "stream_options", "is for streams");
  refused(R"({"stream": true, "stream_options": {"include_usage": 1}})", "stream_options", "include_usage: is 1");
}
TEST(chat_request, reads_messages) {
  completion_request r;
  ASSERT_FALSE(
      chat(R"({"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "a"},
    {"type": "text", "text": "b"}]}, {"role": "assistant", "content": "c", "name": "x"}], "max_completion_tokens": 3, "max_tokens": 9, "logprobs": false,
    "tools": [], "response_format": {"type": "text"}})",
           r));
  ASSERT_EQ(r.messages.size(), 3u);
  EXPECT_EQ(r.messages[0].role, "system");
  EXPECT_EQ(r.messages[1].content, "ab");
  EXPECT_EQ(r.messages[2].role, "assistant");
  EXPECT_EQ(r.how.tokens, 3);
  completion_request open;
  ASSERT_FALSE(chat(R"({"messages": [{"role": "user", "content": "a"}]})", open));
  EXPECT_EQ(open.how.tokens, -1) << "up to the end of the context";
}
TEST(chat_request, refuses_what_is_no_chat) {
  const auto refused = [](std::string_view body, std::string_view param, std::string_view part) {
    completion_request r;
    refuses(chat(body, r), param, part);
  };
  refused("{}", "messages", "is missing");
  refused(R"({"messages": []})", "messages", "not a list of 1 to 4096");
  refused(R"({"messages": [{"role": "tool", "content": "a"}]})", "messages", "message 1 has the role \"tool\"");
  refused(R"({"messages": [{"content": "a"}]})", "messages", "the role none");
  refused(R"({"messages": [1]})", "messages", "the role none");
  refused(R"({"messages": [{"role": "user"}]})", "messages", "without content");
  refused(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", "messages", "no text");
  refused(R"({"messages": [{"role": "user", "content": "a"}], "tools": [{}]})", "tools", "tools are not called");
  refused(R"({"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_object"}})", "response_format",
          "not constrained");
  refused(R"({"messages": [{"role": "user", "content": "a"}], "logprobs": true})", "logprobs", "is true");
}
TEST(token_request, reads_both_directions) {
  tokenize_request t;
  ASSERT_FALSE(read_tokenize_request(R"({"content": "a", "add_special": true})", t));
  EXPECT_EQ(t.content, "a");
  EXPECT_TRUE(t.add_special && !t.parse_special);
  refuses(read_tokenize_request("{}", t), "content", "is missing");
  token_ids ids{7};
  ASSERT_FALSE(read_detokenize_request(R"({"tokens": [5, 6]})", vocab, ids));
  EXPECT_EQ(ids, (token_ids{5, 6}));
  token_ids none;
  ASSERT_FALSE(read_detokenize_request(R"({"tokens": []})", vocab, none));
  EXPECT_TRUE(none.empty());
  refuses(read_detokenize_request(R"({"tokens": ["a"]})", vocab, none), "tokens", "more than 0");
  refuses(read_detokenize_request(R"({"tokens": [100]})", vocab, none), "tokens", "the id 100");
  refuses(read_detokenize_request(R"({})", vocab, none), "tokens", "is missing");
}

}  // namespace request_test
