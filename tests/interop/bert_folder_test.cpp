// A BERT that transformers saved gives the features and sentence embeddings that it gives there; tests/fixtures/make_fixtures.py made the folder.
#include <isotope/interop/bert_folder.hpp>

#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include "../device_there.hpp"
#include "../io/scratch_folder.hpp"

#include <fixtures_folder.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace iso = isotope;
namespace io = isotope::io;
namespace interop = isotope::interop;

namespace bert_folder_test {

/// The backend of the build in f32: the fixtures are, and bf16 would leave no bound that finds a wrong layout.
using target = iso::target<iso::selected_backend, iso::precision::f32, iso::selected::kernel_set>;
constexpr int length = 12, second = 7, width = 24;  // row 0 has 12 tokens, row 1 has 7

std::string fixture() { return fixtures_folder + std::string("bert"); }
template <class T> T must(iso::result<T> r) {
  if (!r) throw std::runtime_error(r.error().line());
  return *std::move(r);
}
void must(const iso::result<void>& r) { ASSERT_TRUE(r.ok()) << r.error().line(); }

struct recorded {
  io::safetensors_file file = must(io::open_safetensors(fixture() + "/expected.safetensors"));
  std::vector<float> floats(std::string_view name) const {
    std::vector<float> x(std::size_t(file.find(name)->elems()));
    must(file.read_f32(*file.find(name), x));
    return x;
  }
  std::vector<std::int32_t> ids(std::string_view name) const {
    std::vector<std::int32_t> x(std::size_t(file.find(name)->elems()));
    must(file.read(*file.find(name), std::as_writable_bytes(std::span(x))));
    return x;
  }
};

/// A session of a model with the weights of the fixture.
template <class Model> iso::device<target>::session opened(const Model& model, bool partial = false) {
  const auto folder = must(io::open_model(fixture()));
  auto device = isotope_test::there(iso::device<target>::open());
  auto session = must(device->load(must(iso::plan_inference<target>(model))));
  const auto match = must(interop::match_bert(folder, session.parameters()));
  must(interop::accept(folder, match, partial));
  must(interop::load_weights(session, folder, match));
  return session;
}
/// Numbers of both rows, packed after an idle one and with idle ones behind them.
std::vector<std::int32_t> packed(std::span<const std::int32_t> both, int rows) {
  std::vector<std::int32_t> x(std::size_t(rows), 0);
  std::copy(both.begin(), both.begin() + length, x.begin() + 1);
  std::copy(both.begin() + length, both.begin() + length + second, x.begin() + 1 + length);
  return x;
}
constexpr int rows = 24;
void set_inputs(iso::device<target>::session& session, const recorded& there) {
  must(session.set<std::int32_t>("tokens", packed(there.ids("ids"), rows)));
  must(session.set<std::int32_t>("types", packed(there.ids("token_type_ids"), rows)));
  std::vector<std::int32_t> position(2 * length);
  for (int i = 0; i < 2 * length; ++i) position[std::size_t(i)] = i % length;
  must(session.set<std::int32_t>("position", packed(position, rows)));
  must(session.set<std::int32_t>("starts", std::vector<std::int32_t>{1, 1 + length, 1 + length + second, 1 + length + second}));
}
/// max |a - b|; NaN counts as infinitely far.
double apart(std::span<const float> a, std::span<const float> b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (const double d = std::fabs(double(a[i]) - double(b[i])); !(d <= worst)) worst = std::isnan(d) ? INFINITY : d;
  return worst;
}
double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  return ab / std::sqrt(aa * bb);
}

TEST(bert_folder, has_the_features_of_transformers_after_every_layer) {
  const recorded there;
  const auto config = must(interop::read_bert_config(must(io::open_model(fixture()))));
  EXPECT_EQ(config.size, (iso::model::bert{2, 4, 24, 96, 96, 32, 2, 0.1}));
  EXPECT_TRUE(config.one_dropout);
  for (const int layers : {1, 2}) {
    auto size = config.size;
    size.layers = layers;
    auto session = opened(iso::model::bert_features_of{size, rows, 3, true}, layers == 1);
    set_inputs(session, there);
    session.run({}, iso::phase_always);
    const auto y = must(session.output<float>("output"));
    const auto expected = there.floats("hidden." + std::to_string(layers));
    // Features are up to 4; sums of 24 to 96 products in f32 are apart by some 1e-6 in any order, a wrong part of qkv or type by more than 0.1.
    EXPECT_LE(apart(std::span(y).subspan(width, length * width), std::span(expected).first(length * width)), 1e-3);
    EXPECT_LE(
        apart(std::span(y).subspan((1 + length) * width, second * width), std::span(expected).subspan(length * width, second * width)),
        1e-3);
  }
}
TEST(bert_folder, has_the_sentence_embeddings_of_transformers_packed_and_padded) {
  const recorded there;
  const auto config = must(interop::read_bert_config(must(io::open_model(fixture()))));
  EXPECT_EQ(config.sentence.pooling, iso::pooling_kind::mean);
  EXPECT_TRUE(config.sentence.normalise);
  EXPECT_EQ(config.sentence.most_tokens, 16);
  const auto expected = there.floats("embedding");
  const auto near = [&](std::span<const float> y) {
    EXPECT_LE(apart(y, expected), 1e-3);
    for (std::size_t b = 0; b < 2; ++b)
      EXPECT_GE(cosine(y.subspan(b * width, width), std::span(expected).subspan(b * width, width)), 0.99999);
  };
  auto session = opened(iso::model::bert_embeddings_of{config.size, rows, 3, config.sentence.pooling, config.sentence.normalise, true});
  set_inputs(session, there);
  session.run({}, iso::phase_always);
  const auto y = must(session.output<float>("output"));
  near(std::span(y).first(2 * width));
  for (std::size_t c = 0; c < width; ++c) EXPECT_EQ(y[2 * width + c], 0) << "an empty sequence";

  auto padded = opened([&]<class M>(iso::scope<M> s) {
    const auto tokens = s.input("tokens", {2, length}, iso::dtype::i32), types = s.input("types", {2, length}, iso::dtype::i32),
               mask = s.input("mask", {2, length});
    const auto x = iso::model::bert_body(s, config.size, tokens, types, iso::model::bert_sequences<M>{mask});
    return iso::model::bert_pooled(x, mask, {config.sentence.pooling, config.sentence.normalise});
  });
  must(padded.set<std::int32_t>("tokens", there.ids("ids")));
  must(padded.set<std::int32_t>("types", there.ids("token_type_ids")));
  const auto real = there.ids("attention_mask");
  must(padded.set<float>("mask", std::vector<float>(real.begin(), real.end())));
  padded.run({}, iso::phase_always);
  near(must(padded.output<float>("output")));
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// The fixture's folder with one text replaced in one of its files.
struct changed_folder {
  iso::scratch_folder scratch;
  std::string path = scratch.at("model");
  changed_folder() { std::filesystem::copy(fixture(), path, std::filesystem::copy_options::recursive); }
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = text_of(path + "/" + file);
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(path + "/" + file) << text.replace(at, from.size(), to);
  }
  iso::result<interop::bert_config> read() const {
    auto folder = io::open_model(path);
    if (!folder) return folder.error();
    return interop::read_bert_config(*folder);
  }
};
TEST(bert_folder, refuses_by_name_what_is_not_computed) {
  struct change {
    std::string file, from, to, named;
  };
  const std::string pooling = "1_Pooling/config.json";
  for (const change& c : {change{"config.json", "\"hidden_act\": \"gelu\"", "\"hidden_act\": \"relu\"", "hidden_act: is \"relu\""},
                          {"config.json", "\"use_cache\"", "\"position_embedding_type\": \"relative_key\", \"use_cache\"", "relative_key"},
                          {"config.json", "1e-12", "1e-5", "layer_norm_eps: is 1e-05"},
                          {"config.json", "\"is_decoder\": false", "\"is_decoder\": true", "is_decoder: is true"},
                          {"config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5", "not a multiple of heads 5"},
                          {"config.json", "\"type_vocab_size\": 2,", "", "type_vocab_size: is missing"},
                          {"config.json", "\"model_type\": \"bert\"", "\"model_type\": \"gpt2\"", "is a GPT-2"},
                          {pooling, "max_tokens\": false", "max_tokens\": true", "pooling_mode_max_tokens: is true"},
                          {pooling, "cls_token\": false", "cls_token\": true", "so is pooling_mode_cls_token"},
                          {pooling, "mean_tokens\": true", "mean_tokens\": false", "nor is pooling_mode_cls_token"},
                          {pooling, "24", "25", "word_embedding_dimension: is 25"},
                          {"modules.json", "models.Normalize", "models.Dense", "module 2 is \"sentence_transformers.models.Dense\""},
                          {"modules.json", "\"1_Pooling\"", "\"../1_Pooling\"", "is not the name of a folder"},
                          {"sentence_bert_config.json", "\"do_lower_case\": false", "\"do_lower_case\": true", "do_lower_case: is true"},
                          {"sentence_bert_config.json", "16", "0", "max_seq_length: is 0"}}) {
    const changed_folder f;
    f.replace(c.file, c.from, c.to);
    const auto r = f.read();
    ASSERT_FALSE(r.ok()) << c.to;
    EXPECT_NE(r.error().line().find(c.named), std::string::npos) << r.error().line();
    EXPECT_NE(r.error().line().find(c.file), std::string::npos) << r.error().line();
  }
}
TEST(bert_folder, takes_pooling_norm_and_length_from_the_files_of_the_folder) {
  const changed_folder f;
  f.replace("1_Pooling/config.json", "cls_token\": false", "cls_token\": true");
  f.replace("1_Pooling/config.json", "mean_tokens\": true", "mean_tokens\": false");
  f.replace("sentence_bert_config.json", "16", "512");
  EXPECT_EQ(must(f.read()).sentence.pooling, iso::pooling_kind::first);
  EXPECT_EQ(must(f.read()).sentence.most_tokens, 32) << "no more than there are positions";
  for (const char* file : {"modules.json", "sentence_bert_config.json"}) std::filesystem::remove(f.path + "/" + file);
  const auto plain = must(f.read()).sentence;
  EXPECT_EQ(plain.pooling, iso::pooling_kind::mean);
  EXPECT_FALSE(plain.normalise);
  EXPECT_EQ(plain.most_tokens, 32);
}

/// Parameters without a plan.
struct fake_session {
  std::vector<iso::slot> slots;
  std::map<std::string, std::vector<float>> values;
  std::span<const iso::slot> parameters() const { return slots; }
  iso::result<void> write(iso::tensor_kind, std::size_t k, std::span<const float> in) {
    values[std::string(slots[k].path.view())].assign(in.begin(), in.end());
    return {};
  }
};
TEST(bert_folder, accepts_the_names_of_older_files_and_leaves_heads_out) {
  const iso::scratch_folder scratch;
  std::filesystem::copy(fixture() + "/config.json", scratch.at("config.json"));
  const std::string layer = "bert.encoder.layer.0.";
  const std::vector<std::string> names{layer + "output.LayerNorm.gamma",
                                       layer + "output.LayerNorm.beta",
                                       layer + "attention.self.query.bias",
                                       layer + "attention.self.key.bias",
                                       layer + "attention.self.value.bias",
                                       "bert.embeddings.position_ids",
                                       "bert.pooler.dense.bias",
                                       "cls.predictions.bias",
                                       "bert.pooler_of_another_kind"};
  std::vector<std::vector<float>> numbers;
  std::vector<io::stored_tensor> stored;
  for (std::size_t k = 0; k < names.size(); ++k) numbers.push_back({float(2 * k), float(2 * k + 1)});
  for (std::size_t k = 0; k < names.size(); ++k) stored.push_back({names[k], io::f32_elements, {2}, std::as_bytes(std::span(numbers[k]))});
  ASSERT_TRUE(io::write_safetensors(scratch.at("model.safetensors"), stored, {}).ok());
  fake_session s;
  for (const auto& [path, elems] : {std::pair{"encoder.layer.0.output.LayerNorm.weight", 2},
                                    {"encoder.layer.0.output.LayerNorm.bias", 2},
                                    {"encoder.layer.0.attention.self.qkv.bias", 6}}) {
    s.slots.emplace_back();
    s.slots.back().path = path;
    s.slots.back().dims = {elems};
  }
  const auto folder = must(io::open_model(scratch.at("")));
  const auto match = must(interop::match_bert(folder, s.slots));
  EXPECT_EQ(match.left_out, (std::vector<std::string>{"bert.pooler.dense.bias [2]", "cls.predictions.bias [2]"}));
  EXPECT_EQ(match.unused, (std::vector<std::string>{"bert.pooler_of_another_kind [2]"}));
  EXPECT_TRUE(match.missing.empty() && match.misshapen.empty());
  must(interop::load_weights(s, folder, match));
  EXPECT_EQ(s.values.at("encoder.layer.0.output.LayerNorm.weight"), numbers[0]);
  EXPECT_EQ(s.values.at("encoder.layer.0.output.LayerNorm.bias"), numbers[1]);
  EXPECT_EQ(s.values.at("encoder.layer.0.attention.self.qkv.bias"), (std::vector<float>{4, 5, 6, 7, 8, 9}));
}

TEST(bert_folder, trains_a_classifier_on_padded_sequences) {
  const iso::model::bert size{1, 2, 16, 32, 20, 8, 2, 0.1};
  auto device = isotope_test::there(iso::device<target>::open());
  for (const auto pooling : {iso::pooling_kind::first, iso::pooling_kind::mean}) {
    iso::model::bert_class_loss_of model{{size, 2, 4, 6, pooling}};
    auto s = must(device->load(must(iso::plan_training<target>(model))));
    s.initialize(3);
    // The class is the first token; the others and the padding say nothing of it.
    must(s.template set<std::int32_t>("tokens",
                                      std::vector<std::int32_t>{3, 5, 6, 7, 8, 9, 4, 7, 5, 0, 0, 0, 3, 9, 0, 0, 0, 0, 4, 8, 6, 5, 7, 0}));
    must(s.template set<float>("mask", std::vector<float>{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0}));
    must(s.template set<std::int32_t>("labels", std::vector<std::int32_t>{0, 1, 0, 1}));
    double first = 0, last = 0;
    for (int k = 0; k < 60; ++k) {
      iso::step_scalars now;
      now.learning_rate = 3e-3f;
      now.counter = std::uint64_t(k);
      s.run(now, iso::phase_always);
      last = double(must(s.template output<float>("loss"))[0]);
      if (k == 0) first = last;
    }
    EXPECT_NEAR(first, std::log(2.0), 0.2);
    EXPECT_LT(last, 0.2);
  }
}

}  // namespace bert_folder_test
