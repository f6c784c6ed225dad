// Answers of OpenAI's interface: their JSON, streams, and the metrics.
#include <isotope/io/json.hpp>
#include <isotope/serve/api_error.hpp>
#include <isotope/serve/metrics.hpp>
#include <isotope/serve/replies.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reply_test {

using namespace isotope::serve;
using isotope::text_end;

isotope::io::json parsed(std::string_view text) {
  auto r = isotope::io::parse_json(text, "reply");
  EXPECT_TRUE(r.ok()) << text;
  return r ? *r : isotope::io::json{};
}
/// The JSON of an event.
std::string_view json_of(std::string_view event) {
  EXPECT_TRUE(event.starts_with("data: ") && event.ends_with("\n\n")) << event;
  return event.substr(6, event.size() - 8);
}

TEST(api_error, is_an_object_with_four_fields) {
  const auto root = parsed(bad_request("input", "is \"5\"", "give a string").body());
  const auto& e = *root.find("error");
  EXPECT_EQ(e.find("message")->text, "input: is \"5\"; fix: give a string");
  EXPECT_EQ(e.find("type")->text, "invalid_request_error");
  EXPECT_EQ(e.find("param")->text, "input");
  EXPECT_EQ(e.find("code")->is, isotope::io::json::kind::null);
  const auto s = server_error(isotope::fail(isotope::errc::device_lost, "is lost", "device 0", "open it again"));
  EXPECT_EQ(s.status, 503);
  EXPECT_EQ(s.code, "device_failed");
  EXPECT_EQ(s.message, "device 0: is lost; fix: open it again");
  EXPECT_EQ(server_error(isotope::fail(isotope::errc::queue_full, "is full", "", "")).code, "overloaded");
  EXPECT_EQ(server_error(isotope::fail(isotope::errc::corrupt, "is wrong", "", "")).status, 500);
  EXPECT_EQ(parsed(s.body()).find("error")->find("param")->is, isotope::io::json::kind::null);
}
TEST(base64, pads_every_length_as_the_standard_says) {
  // Four bytes of each f32, the lowest first: 1.0f is 00 00 80 3f.
  EXPECT_EQ(base64_of({}), "");
  EXPECT_EQ(base64_of(std::vector<float>{1.0f}), "AACAPw==");
  EXPECT_EQ(base64_of(std::vector<float>{1.0f, -2.0f}), "AACAPwAAAMA=");
  EXPECT_EQ(base64_of(std::vector<float>{1.0f, -2.0f, 0.5f}), "AACAPwAAAMAAAAA/");
}
TEST(embeddings_reply, has_a_vector_for_each_text) {
  const std::vector<float> rows{1, 0.5f, -0.1f, 2};
  const auto root = parsed(embeddings_reply(rows, 2, false, "tiny", {9, 0}));
  EXPECT_EQ(root.find("object")->text, "list");
  EXPECT_EQ(root.find("model")->text, "tiny");
  ASSERT_EQ(root.find("data")->items.size(), 2u);
  const auto& second = root.find("data")->items[1];
  EXPECT_EQ(second.find("index")->text, "1");
  EXPECT_EQ(second.find("object")->text, "embedding");
  EXPECT_EQ(second.find("embedding")->items[0].text, "-0.1");
  EXPECT_EQ(root.find("usage")->find("total_tokens")->text, "9");
  EXPECT_EQ(root.find("usage")->find("completion_tokens"), nullptr);
  EXPECT_EQ(parsed(embeddings_reply(rows, 4, true, "tiny", {})).find("data")->items[0].find("embedding")->text, base64_of(rows));
}
TEST(completion_reply, has_texts_or_a_message) {
  const std::vector<std::pair<std::string, text_end>> texts{{"a \"b\"\n", text_end::stop}, {"c", text_end::length}};
  const auto root = parsed(completion_reply({false, "cmpl-1", 1700000000, "tiny"}, texts, {3, 4}));
  EXPECT_EQ(root.find("object")->text, "text_completion");
  EXPECT_EQ(root.find("created")->text, "1700000000");
  EXPECT_EQ(root.find("choices")->items[0].find("text")->text, "a \"b\"\n");
  EXPECT_EQ(root.find("choices")->items[0].find("finish_reason")->text, "stop");
  EXPECT_EQ(root.find("choices")->items[1].find("index")->text, "1");
  EXPECT_EQ(root.find("choices")->items[1].find("finish_reason")->text, "length");
  EXPECT_EQ(root.find("usage")->find("total_tokens")->text, "7");
  const auto chat = parsed(completion_reply({true, "chatcmpl-1", 1, "tiny"}, std::span(texts).first(1), {3, 4}));
  EXPECT_EQ(chat.find("object")->text, "chat.completion");
  EXPECT_EQ(chat.find("choices")->items[0].find("message")->find("role")->text, "assistant");
  EXPECT_EQ(chat.find("choices")->items[0].find("message")->find("content")->text, "a \"b\"\n");
}
TEST(completion_chunk, is_an_event_of_a_stream) {
  const completion_head text{false, "cmpl-1", 1, "tiny"}, chat{true, "chatcmpl-1", 1, "tiny"};
  auto root = parsed(json_of(completion_chunk(text, 2, "a\nb", text_end::none, true, false)));
  EXPECT_EQ(root.find("choices")->items[0].find("text")->text, "a\nb");
  EXPECT_EQ(root.find("choices")->items[0].find("index")->text, "2");
  EXPECT_EQ(root.find("choices")->items[0].find("finish_reason")->is, isotope::io::json::kind::null);
  EXPECT_EQ(root.find("usage"), nullptr);
  root = parsed(json_of(completion_chunk(chat, 0, "", text_end::none, true, true)));
  EXPECT_EQ(root.find("object")->text, "chat.completion.chunk");
  EXPECT_EQ(root.find("choices")->items[0].find("delta")->find("role")->text, "assistant");
  EXPECT_EQ(root.find("usage")->is, isotope::io::json::kind::null) << "the last chunk has it";
  root = parsed(json_of(completion_chunk(chat, 0, "x", text_end::none, false, false)));
  EXPECT_EQ(root.find("choices")->items[0].find("delta")->find("content")->text, "x");
  root = parsed(json_of(completion_chunk(chat, 0, "", text_end::length, false, false)));
  EXPECT_TRUE(root.find("choices")->items[0].find("delta")->members.empty());
  EXPECT_EQ(root.find("choices")->items[0].find("finish_reason")->text, "length");
  root = parsed(json_of(usage_chunk(chat, {1, 2})));
  EXPECT_TRUE(root.find("choices")->items.empty());
  EXPECT_EQ(root.find("usage")->find("completion_tokens")->text, "2");
  EXPECT_EQ(last_event, "data: [DONE]\n\n");
}
TEST(models_reply, lists_the_model) {
  const std::vector<std::pair<std::string, std::int64_t>> numbers{{"context", 24}};
  const auto root = parsed(models_reply(model_json("tiny", 5, numbers)));
  EXPECT_EQ(root.find("data")->items[0].find("id")->text, "tiny");
  EXPECT_EQ(root.find("data")->items[0].find("context")->text, "24");
  EXPECT_EQ(parsed(tokenize_reply(std::vector<std::int32_t>{1, 2})).find("tokens")->items[1].text, "2");
  EXPECT_EQ(parsed(detokenize_reply("\xff")).find("content")->text, "\xef\xbf\xbd") << "JSON holds no bytes that are not UTF-8";
}
TEST(metrics, are_text_of_prometheus) {
  metrics m;
  m.slots = 8;
  m.generated_tokens += 5;
  m.answered("/v1/completions", 200, 0.01);
  m.answered("/v1/completions", 200, 1000);
  m.answered("/health", 503, 0);
  const std::string text = m.text();
  for (const std::string_view line : {"# TYPE isotope_generated_tokens_total counter\nisotope_generated_tokens_total 5\n",
                                      "\nisotope_slots 8\n", "\nisotope_requests_total{path=\"/v1/completions\",status=\"200\"} 2\n",
                                      "\nisotope_requests_total{path=\"/health\",status=\"503\"} 1\n",
                                      "isotope_request_seconds_bucket{path=\"/v1/completions\",le=\"0.005\"} 0\n",
                                      "isotope_request_seconds_bucket{path=\"/v1/completions\",le=\"0.02\"} 1\n",
                                      "isotope_request_seconds_bucket{path=\"/v1/completions\",le=\"+Inf\"} 2\n",
                                      "isotope_request_seconds_count{path=\"/v1/completions\"} 2\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace reply_test
