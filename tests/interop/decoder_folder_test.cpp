// A folder of Hugging Face continues token sequences as transformers does, and texts by its own tokenizer.
#include <isotope/generate/text_generator.hpp>
#include <isotope/io/byte_pair_train.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include "../device_there.hpp"
#include "../io/scratch_folder.hpp"

#include <fixtures_folder.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace iso = isotope;
namespace io = isotope::io;
namespace interop = isotope::interop;

namespace decoder_folder_test {

/// The backend of the build in f32, in which the fixtures were computed.
using target = iso::target<iso::selected_backend, iso::precision::f32, iso::selected::kernel_set>;

template <class T> T must(iso::result<T> r) {
  if (!r) throw std::runtime_error(r.error().line());
  return *std::move(r);
}
iso::device<target> opened() { return must(isotope_test::there(iso::device<target>::open())); }

/// The greedy continuation of a recorded prompt, with another sequence beside it.
void continues_as_transformers(const std::string& kind) {
  const std::string path = fixtures_folder + kind;
  const auto folder = must(io::open_model(path));
  const auto config = must(interop::read_decoder_config(folder));
  const auto file = must(io::open_safetensors(path + "/expected.safetensors"));
  const auto recorded = [&](std::string_view name) {
    std::vector<std::int32_t> x(std::size_t(file.find(name)->elems()));
    EXPECT_TRUE(file.read(*file.find(name), std::as_writable_bytes(std::span(x))).ok());
    return x;
  };
  const auto ids = recorded("ids"), want = recorded("generated");
  const auto on = opened();
  auto batch = must(std::visit(
      [&](const auto& c) { return iso::batcher<target>::open(on, interop::inference_size(c), {.slots = 2, .prefill_tokens = {8}}); },
      config));
  ASSERT_TRUE(interop::load_decoder(batch, folder, config).ok());
  const iso::batch_request requests[] = {{std::span(ids).first(4), std::int64_t(want.size()), {.temperature = 0}},
                                         {std::span(ids).last(9), 5, {.seed = 3}}};
  std::vector<std::int32_t> text;
  const auto r = batch.generate(requests, [&](std::size_t k, std::int32_t token) {
    if (k == 0) text.push_back(token);
    return true;
  });
  ASSERT_TRUE(r.ok()) << r.error().line();
  EXPECT_EQ(text, want);
}
TEST(decoder_folder, gpt2_continues_as_transformers) { continues_as_transformers("gpt2"); }
TEST(decoder_folder, llama_and_qwen_continue_as_transformers) {
  for (const char* kind : {"llama", "qwen2", "qwen3"}) {
    SCOPED_TRACE(kind);
    continues_as_transformers(kind);
  }
}

TEST(decoder_folder, says_which_families_are_no_decoders) {
  io::model_folder folder;
  folder.family = {"bert", "BERT"};
  const auto r = interop::read_decoder_config(folder);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().line().find("BERT (model_type 'bert') is no decoder"), std::string::npos) << r.error().line();
}

/// A folder with a small model of random weights and a tokenizer of bytes and some pairs.
struct text_folder : iso::scratch_folder {
  std::string path = at("model");

  text_folder() {
    const auto tokens = must(io::train_byte_pair("to be, or not to be: that is the question", {.size = 262, .least = 1}));
    const iso::model::gpt size{.layers = 1, .heads = 2, .width = 16, .vocab = int(tokens.tokens.size()) + 1, .context = 24};
    auto session = must(opened().load(must(iso::plan_training<target>(iso::model::gpt_loss_of{size, 1, 4}))));
    session.initialize(3);
    EXPECT_TRUE(interop::save_gpt2(path, session, size).ok());
    put("model/tokenizer.json", io::tokenizer_json(tokens, {"<|endoftext|>"}));
    put("model/generation_config.json", "{\"eos_token_id\": [300, 301]}");  // never drawn
  }
  iso::text_generator<target> open(int slots = 1) const {
    return must(iso::text_generator<target>::open(opened(), must(io::open_model(path)), {.slots = slots, .prefill_tokens = {8}}));
  }
};
std::string text_of(iso::text_generator<target>& g, std::string_view prompt, const iso::text_request& how) {
  std::string all;
  const auto r = g.generate(prompt, how, [&](std::string_view piece) {
    for (std::size_t at = 0; at < piece.size();) {
      const auto bytes = io::decode_utf8(piece, at).bytes;
      EXPECT_GT(bytes, 0u) << "a piece ends within a character";
      at += bytes == 0 ? 1 : bytes;
    }
    all += piece;
    return true;
  });
  EXPECT_TRUE(r.ok()) << r.error().line();
  return all;
}

TEST(text_generator, continues_texts_with_a_llama) {
  const text_folder f;
  const iso::model::llama size{
      .layers = 1, .heads = 2, .kv_heads = 1, .width = 16, .head_size = 8, .hidden = 24, .vocab = 263, .context = 24};
  auto session = must(opened().load(must(iso::plan_training<target>(iso::model::llama_loss_of{size, 1, 4}))));
  session.initialize(3);
  ASSERT_TRUE(interop::save_llama(f.path, session, size).ok());  // in the place of the GPT
  auto g = f.open();
  EXPECT_EQ(g.batch().context(), 24);
  text_of(g, "to be", {.tokens = 30, .temperature = 1.2f, .seed = 7});
  EXPECT_EQ(g.drawn(), 30);
}
TEST(text_generator, continues_texts_by_their_own_tokenizer_up_to_a_stop_string) {
  const text_folder f;
  auto g = f.open();
  // Random weights draw random bytes, most of which are no characters.
  const iso::text_request how{.tokens = 60, .temperature = 1.2f, .seed = 7};
  std::vector<std::int32_t> ids;
  const auto prompt = must(g.prompt_ids("to be", how));
  const iso::batch_request request{prompt, how.tokens, how.draw()};
  ASSERT_TRUE(g.batch().generate({&request, 1}, [&](std::size_t, std::int32_t t) { return ids.push_back(t), true; }).ok());
  const std::string whole = must(g.tokenizer().decode(ids, false));
  EXPECT_EQ(text_of(g, "to be", how), whole);
  EXPECT_EQ(g.drawn(), 60);

  const auto at = whole.find_first_of("abcdefghijklmnopqrstuvwxyz ", 12);
  ASSERT_NE(at, whole.npos);
  auto stopped = how;
  stopped.stop = {whole.substr(at, 3), ""};
  EXPECT_EQ(text_of(g, "to be", stopped), whole.substr(0, whole.find(stopped.stop[0])));
  EXPECT_LT(g.drawn(), 60);

  auto two = f.open(2);
  std::vector<std::string> texts(3);
  int last = 0;
  const std::vector<std::string> prompts{"or not", "to be", "that"};
  const auto r = two.generate(prompts, how, [&](std::size_t k, std::string_view piece, bool ends) {
    texts[k] += piece;
    last += ends ? 1 : 0;
    return true;
  });
  ASSERT_TRUE(r.ok()) << r.error().line();
  EXPECT_EQ(texts[1], whole) << "beside other texts";
  EXPECT_EQ(last, 3);
}
/// Texts that come and go at any time are what each is alone; those that are cancelled are its beginnings.
TEST(text_batch, continues_texts_that_come_and_go) {
  const text_folder f;
  auto g = f.open(2);
  std::vector<iso::text_request> hows;
  std::vector<std::string> whole;
  const std::vector<std::string> prompts{"to be", "or not", "that", "is the question"};
  for (std::size_t k = 0; k < prompts.size(); ++k) {
    hows.push_back({.tokens = std::int64_t(40 - 9 * k), .temperature = 1.2f, .seed = 7 + k});
    whole.push_back(text_of(g, prompts[k], hows[k]));
  }
  const auto at = whole[3].find_first_of("abcdefghijklmnopqrstuvwxyz ", 1);
  ASSERT_NE(at, whole[3].npos);
  hows[3].stop = {whole[3].substr(at, 1)};
  whole[3] = text_of(g, prompts[3], hows[3]);

  iso::text_batch<target> batch(g.batch(), g.tokenizer(), g.ends());
  std::vector<std::string> texts(12);
  std::vector<iso::text_end> ends(texts.size(), iso::text_end::none);
  std::vector<int> slots(texts.size(), -1);
  std::size_t next = 0;
  for (int step = 0; next < texts.size() || batch.busy(); ++step) {
    if (next < texts.size() && batch.has_room() && step % 3 == 0) {
      slots[next] = must(batch.admit(must(g.prompt_ids(prompts[next % 4], hows[next % 4])), hows[next % 4], next));
      ++next;
    }
    ASSERT_LE(batch.live(), 2u);
    ASSERT_TRUE(batch
                    .advance([&](std::size_t k, const iso::text_piece& piece) {
                      texts[k] += piece.text;
                      ends[k] = piece.end;
                      return true;
                    })
                    .ok());
    if (step == 5) batch.cancel(slots[0]);
  }
  EXPECT_TRUE(whole[0].starts_with(texts[0]) && texts[0].size() < whole[0].size());
  EXPECT_EQ(ends[0], iso::text_end::none) << "cancelled";
  for (std::size_t k = 1; k < texts.size(); ++k) {
    EXPECT_EQ(texts[k], whole[k % 4]) << k;
    EXPECT_EQ(ends[k], k % 4 == 3 ? iso::text_end::stop : iso::text_end::length) << k;
  }
}
/// The program in docs/GENERATION.md, as tests/repo/docs_test.sh compares. It is compiled, not run: the folder is not in the repository.
[[maybe_unused]] iso::result<void> documented() {
  // docs/GENERATION.md:
  auto folder = isotope::io::open_model("gpt2");
  if (!folder) return folder.error();
  auto gpt = isotope::text_generator<isotope::selected>::open(*folder, {.slots = 8});
  if (!gpt) return gpt.error();
  const isotope::text_request how{.tokens = 64, .temperature = 0.8f, .top_k = 40, .seed = 1};
  return gpt->generate("To be", how, [](std::string_view piece) {
    return std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size();  // false ends the text
  });
}

TEST(text_generator, ends_at_its_end_tokens_and_refuses_prompts_beyond_the_context) {
  const text_folder f;
  {
    auto g = f.open();
    std::string longer;
    for (int i = 0; i < 40; ++i) longer += "xq";
    const auto keep = [](std::string_view) { return true; };
    const auto refused = g.generate(longer, {}, keep);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().line().find("has 80 tokens, and the context of the model has 24"), std::string::npos)
        << refused.error().line();
    EXPECT_NE(refused.error().line().find("--truncate"), std::string::npos);
    EXPECT_TRUE(g.generate(longer, {.tokens = 2, .truncate = true}, keep).ok());
    EXPECT_EQ(must(g.prompt_ids("", {})), std::vector<std::int32_t>{300}) << "an empty prompt";
    const auto one = must(g.prompt_ids("to be", {}));
    std::vector<std::int32_t> ids;
    const iso::batch_request request{one, 8, {.seed = 2}};
    ASSERT_TRUE(g.batch().generate({&request, 1}, [&](std::size_t, std::int32_t t) { return ids.push_back(t), true; }).ok());
    f.put("model/generation_config.json", "{\"eos_token_id\": " + std::to_string(ids[3]) + "}");
    ids.resize(std::size_t(std::find(ids.begin(), ids.end(), ids[3]) - ids.begin()) + 1);
    auto ending = f.open();
    text_of(ending, "to be", {.tokens = 8, .seed = 2});
    EXPECT_EQ(ending.drawn(), std::int64_t(ids.size()));
    text_of(ending, "to be", {.tokens = 8, .seed = 2, .ignore_end = true});
    EXPECT_EQ(ending.drawn(), 8);
  }
  f.put("model/generation_config.json", "{\"eos_token_id\": \"end\"}");
  const auto folder = must(io::open_model(f.path));
  const auto wrong = iso::text_generator<target>::open(opened(), folder);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().line().find("generation_config.json:1: eos_token_id"), std::string::npos) << wrong.error().line();
  EXPECT_EQ(wrong.error().code, iso::errc::bad_format);
}

}  // namespace decoder_folder_test
