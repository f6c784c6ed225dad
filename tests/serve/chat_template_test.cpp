// Chat templates: which ones are recognised, and the ids that they give.
#include <isotope/io/byte_pair_train.hpp>
#include <isotope/io/tokenizer_file.hpp>
#include <isotope/serve/chat_template.hpp>

#include "../io/scratch_folder.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace chat_template_test {

using namespace isotope::serve;
namespace io = isotope::io;

const std::string chatml =
    R"({% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";
const std::string qwen =
    R"({% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";
const std::string llama3 =
    R"({% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %})";

io::tokenizer words() {
  const auto pairs = io::train_byte_pair("a user asks, an assistant answers", {.size = 262, .least = 1});
  if (!pairs) throw std::runtime_error(pairs.error().line());
  auto t = io::tokenizer_from_json(io::tokenizer_json(*pairs, {"<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>",
                                                               "<|end_header_id|>", "<|eot_id|>"}),
                                   "t.json");
  if (!t) throw std::runtime_error(t.error().line());
  return *std::move(t);
}
const std::vector<chat_message> chat{{"user", " a <|im_end|> \n"}, {"assistant", "an"}};

/// The text of a chat, and whether special tokens that users write stay text.
std::string text_of(const chat_template& t, std::span<const chat_message> messages) {
  const auto w = words();
  const auto ids = chat_ids(t, messages, w);
  EXPECT_TRUE(ids.ok());
  return ids ? *w.decode(*ids) : std::string();
}
TEST(chat_template, of_chatml_writes_roles_and_contents) {
  const auto t = recognised_template(chatml, "");
  ASSERT_TRUE(t);
  EXPECT_EQ(text_of(*t, chat),
            "<|im_start|>user\n a <|im_end|> \n<|im_end|>\n<|im_start|>assistant\nan<|im_end|>\n<|im_start|>assistant\n");
  const auto w = words();
  const auto ids = *chat_ids(*t, chat, w);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), w.id_of("<|im_end|>")), 2) << "the user's is text";
  EXPECT_EQ(std::count(ids.begin(), ids.end(), w.id_of("<|im_start|>")), 3);
  EXPECT_EQ(chat_end(*t, w), w.id_of("<|im_end|>"));
}
TEST(chat_template, of_chatml_may_have_a_system_message) {
  const auto t = recognised_template(qwen, "");
  ASSERT_TRUE(t);
  EXPECT_EQ(text_of(*t, std::vector<chat_message>{{"user", "a"}}),
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(text_of(*t, std::vector<chat_message>{{"system", "s"}, {"user", "a"}}),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
}
TEST(chat_template, of_llama3_trims_contents_and_begins_with_the_first_token) {
  const auto t = recognised_template(llama3, "<|begin_of_text|>");
  ASSERT_TRUE(t);
  EXPECT_EQ(text_of(*t, chat),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\na <|im_end|><|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nan<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(text_of(*t, std::vector<chat_message>{{"user", "\u3000\u00a0\t"}}),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
}
TEST(chat_template, is_recognised_by_its_exact_text) {
  const std::string_view opens = "{% if add_generation_prompt %}";
  std::string always = llama3;  // the first version always opened an answer
  always.erase(always.find(opens), opens.size());
  always.erase(always.rfind("{% endif %}"));
  EXPECT_TRUE(recognised_template(always, ""));
  std::string lines = chatml;  // a line end within a string instead of \n
  for (std::size_t at = 0; (at = lines.find("\\n")) != lines.npos;) lines.replace(at, 2, "\n");
  EXPECT_TRUE(recognised_template(lines, ""));
  EXPECT_TRUE(
      recognised_template("{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}" + chatml, ""));
  EXPECT_FALSE(recognised_template("", ""));
  for (const std::string& known : {chatml, qwen, llama3})
    for (std::size_t at = 0; at < known.size(); at += 7) {
      std::string changed = known;
      changed[at] = changed[at] == '#' ? '+' : '#';
      const auto t = recognised_template(changed, "");
      EXPECT_TRUE(!t || (known == qwen && t->system && t->system->find('#') != std::string::npos)) << changed;
    }
}
TEST(chat_template, is_read_from_its_folder) {
  const isotope::scratch_folder f;
  const std::string path = f.at(".");
  std::string why;
  const auto read = [&] {
    const auto t = read_chat_template(path, why);
    EXPECT_TRUE(t.ok());
    return t ? *t : std::nullopt;
  };
  EXPECT_FALSE(read());
  EXPECT_EQ(why, "the model has no chat template");
  f.put("tokenizer_config.json",
        "{\"chat_template\": " + io::json_string(llama3) + ", \"bos_token\": {\"content\": \"<|begin_of_text|>\"}}");
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->bos, "<|begin_of_text|>");
  f.put("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"tools\", \"template\": \"x\"}, {\"name\": \"default\", \"template\": " +
                                     io::json_string(chatml) + "}]}");
  ASSERT_TRUE(read());
  f.put("chat_template.jinja", qwen + "\n");
  ASSERT_TRUE(read());
  EXPECT_TRUE(read()->system);
  f.put("chat_template.jinja", "{{ messages }}");
  EXPECT_FALSE(read());
  EXPECT_NE(why.find("neither Llama 3's nor ChatML"), std::string::npos);
  f.put("tokenizer_config.json", "{");
  EXPECT_FALSE(read_chat_template(path, why).ok());
}
TEST(chat_template, needs_its_special_tokens) {
  const auto pairs = io::train_byte_pair("abc", {.size = 257, .least = 1});
  ASSERT_TRUE(pairs.ok());
  const auto t = io::tokenizer_from_json(io::tokenizer_json(*pairs, {"<|im_start|>"}), "t.json");
  ASSERT_TRUE(t.ok());
  const auto ids = chat_ids(*recognised_template(chatml, ""), chat, *t);
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().line().find("lacks <|im_end|>"), std::string::npos) << ids.error().line();
}

}  // namespace chat_template_test
