// Names, shapes and configurations that do not fit are refused with every name; parts, transposes and formats arrive where they belong.
#include <isotope/interop/gpt2_folder.hpp>

#include "../io/scratch_folder.hpp"

#include <fixtures_folder.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace iso = isotope;
namespace io = isotope::io;
namespace interop = isotope::interop;
using iso::errc;

namespace stored_weights_test {

/// Parameters without a plan.
struct fake_session {
  std::vector<iso::slot> slots;
  std::vector<std::vector<float>> values;
  void add(std::string_view path, iso::shape dims) {
    iso::slot s;
    s.path = path;
    s.dims = dims;
    slots.push_back(s);
    values.emplace_back(std::size_t(dims.count()), -1.0f);
  }
  std::span<const iso::slot> parameters() const { return slots; }
  iso::result<void> read(iso::tensor_kind, std::size_t k, std::span<float> out) {
    std::copy(values[k].begin(), values[k].end(), out.begin());
    return {};
  }
  iso::result<void> write(iso::tensor_kind, std::size_t k, std::span<const float> in) {
    values[k].assign(in.begin(), in.end());
    return {};
  }
};
/// The parameters of model::gpt{2, 4, 24, 96, 32}, in the order of its state dict.
fake_session gpt() {
  fake_session s;
  for (int l = 0; l < 2; ++l) {
    const auto at = [&](std::string_view rest) { return "h." + std::to_string(l) + "." + std::string(rest); };
    for (const auto& [path, rows, cols] :
         {std::tuple{"attn.c_attn", 72, 24}, {"attn.c_proj", 24, 24}, {"mlp.c_fc", 96, 24}, {"mlp.c_proj", 24, 96}}) {
      s.add(at(path) + ".weight", {rows, cols});
      s.add(at(path) + ".bias", {rows});
    }
    for (const auto* path : {"ln_1", "ln_2"}) s.add(at(path) + ".weight", {24}), s.add(at(path) + ".bias", {24});
  }
  s.add("ln_f.weight", {24});
  s.add("ln_f.bias", {24});
  s.add("wpe.weight", {32, 24});
  s.add("wte.weight", {96, 24});
  return s;
}

struct tensor {
  io::element_type type;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
};
using tensors = std::map<std::string, tensor>;
template <class E> tensor of(io::element_type type, std::vector<std::int64_t> dims, const std::vector<E>& x) {
  const auto bytes = std::as_bytes(std::span(x));
  return {type, std::move(dims), {bytes.begin(), bytes.end()}};
}
tensor f32(std::vector<std::int64_t> dims, const std::vector<float>& x) { return of(io::f32_elements, std::move(dims), x); }

void put(const iso::scratch_folder& f, const tensors& all, std::string_view config) {
  std::vector<io::stored_tensor> stored;
  for (const auto& [name, t] : all) stored.push_back({name, t.type, t.dims, t.bytes});
  ASSERT_TRUE(io::write_safetensors(f.at("model.safetensors"), stored, {}).ok());
  f.put("config.json", config);
}
std::string config_of(std::string_view kind) {
  const auto file = io::read_file(fixtures_folder + std::string(kind) + "/config.json");
  EXPECT_TRUE(file.ok());
  return std::string(file->text());
}
tensors fixture() {
  tensors all;
  const auto file = io::read_safetensors(std::string(fixtures_folder) + "gpt2/model.safetensors");
  EXPECT_TRUE(file.ok());
  for (const auto& t : file->tensors) all[t.name] = {t.type, t.dims, {t.bytes.begin(), t.bytes.end()}};
  return all;
}
/// Opens, matches and loads the fixture after a change.
iso::result<void> load(const std::function<void(tensors&)>& change, bool partial = false, fake_session into = gpt()) {
  const iso::scratch_folder f;
  tensors all = fixture();
  change(all);
  put(f, all, config_of("gpt2"));
  const auto folder = io::open_model(f.at(""));
  if (!folder) return folder.error();
  const auto config = interop::read_gpt2_config(*folder);
  if (!config) return config.error();
  const auto match = interop::match_gpt2(*folder, *config, into.slots);
  if (!match) return match.error();
  if (auto r = interop::accept(*folder, *match, partial); !r) return r;
  return interop::load_weights(into, *folder, *match);
}
void expect(const iso::result<void>& r, errc code, std::string_view text) {
  ASSERT_FALSE(r.ok()) << text;
  EXPECT_EQ(r.error().code, code) << r.error().line();
  EXPECT_NE(r.error().line().find(text), std::string::npos) << r.error().line();
}

TEST(stored_weights, of_the_fixture_fit_with_and_without_prefix_masks_and_a_stored_head) {
  EXPECT_TRUE(load([](tensors&) {}).ok());
  EXPECT_TRUE(load([](tensors& t) {
                tensors bare;
                for (auto& [name, x] : t) bare[name.substr(12)] = x;
                t = bare;
              }).ok());
  EXPECT_TRUE(load([](tensors& t) {
                t["lm_head.weight"] = t["transformer.wte.weight"];
                for (const auto* h : {"transformer.h.0.", "transformer.h.1."}) {
                  t[std::string(h) + "attn.bias"] = of<std::uint8_t>({"BOOL", 1}, {1, 1, 2, 2}, {1, 0, 1, 1});
                  t[std::string(h) + "attn.masked_bias"] = f32({}, {-1e4f});
                }
              }).ok());
}

TEST(stored_weights, that_do_not_fit_are_all_named) {
  const auto broken = [](tensors& t) {
    t.erase("transformer.h.1.mlp.c_fc.bias");
    t.erase("transformer.ln_f.weight");
    t["transformer.h.0.attn.c_proj.weight"].dims = {12, 48};
    t["transformer.wpe.weight"] = of<std::int32_t>({"I32", 4}, {32, 24}, std::vector<std::int32_t>(32 * 24));
    t["transformer.h.2.ln_1.bias"] = f32({24}, std::vector<float>(24));
    t["score.weight"] = f32({2, 24}, std::vector<float>(48));
  };
  const auto r = load(broken);
  for (const auto* part :
       {"2 missing: ", "h.1.mlp.c_fc.bias [96]", "ln_f.weight [24]",
        "2 misshapen: ", "transformer.h.0.attn.c_proj.weight is [12,48] of F32, the model needs [24,24]",
        "transformer.wpe.weight is [32,24] of I32", "2 unused: ", "score.weight [2,24]", "transformer.h.2.ln_1.bias [24]"})
    expect(r, errc::model_mismatch, part);
  expect(load(broken, true), errc::model_mismatch, "misshapen");
}

TEST(stored_weights, load_in_part_if_asked_and_keep_the_other_parameters) {
  const auto less = [](tensors& t) {
    t.erase("transformer.h.1.mlp.c_fc.bias");
    t["score.weight"] = f32({2, 24}, std::vector<float>(48));
  };
  expect(load(less), errc::model_mismatch, "--partial");
  EXPECT_TRUE(load(less, true).ok());
  expect(load([](tensors& t) { t = {{"a", f32({1}, {1})}}; }, true), errc::model_mismatch, "28 missing");
}

TEST(stored_weights, of_an_untied_head_a_doubled_name_or_not_finite_are_refused) {
  expect(load([](tensors& t) {
           t["lm_head.weight"] = t["transformer.wte.weight"];
           t["lm_head.weight"].bytes.back() ^= std::byte(1);
         }),
         errc::invalid_model, "tensor 'lm_head.weight': differs from 'transformer.wte.weight'");
  expect(load([](tensors& t) { t["wte.weight"] = t["transformer.wte.weight"]; }), errc::bad_format,
         "has both 'wte.weight' and 'transformer.wte.weight'");
  expect(load([](tensors& t) {
           std::vector<float> x(24);
           x[5] = std::numeric_limits<float>::infinity();
           t["transformer.ln_f.bias"] = f32({24}, x);
         }),
         errc::non_finite, "tensor 'transformer.ln_f.bias': element 5 is not finite");
}

constexpr iso::model::stored_name packed[] = {{"b.#.qkv.weight", "l.#.q.w", true, 0, 1, 4},
                                              {"b.#.qkv.weight", "l.#.k.w", true, 1, 1, 4},
                                              {"b.#.qkv.weight", "l.#.v.w", true, 2, 2, 4},
                                              {"b.#.qkv.bias", "l.#.qkv.b"}};
constexpr iso::model::stored_names packed_names{{}, packed, {}, {}};

TEST(stored_weights, of_several_tensors_are_packed_and_unpacked) {
  for (const bool wide : {false, true}) {  // wide: more numbers than are read at a time
    const std::int64_t C = wide ? 300 : 3, H = wide ? 256 : 2;
    fake_session s;
    s.add("b.0.qkv.weight", {4 * H, C});
    s.add("b.0.qkv.bias", {4 * H});
    tensors all;
    const auto value = [&](std::int64_t row, std::int64_t col) { return float((row * 7 + col * 3) % 128); };  // exact in bf16
    const auto part = [&](std::int64_t first, std::int64_t rows) {
      std::vector<iso::bfloat16> x;
      for (std::int64_t c = 0; c < C; ++c)
        for (std::int64_t r = 0; r < rows; ++r) x.push_back(iso::bfloat16(value(first + r, c)));
      return of<iso::bfloat16>({"BF16", 2}, {C, rows}, x);
    };
    all["l.0.q.w"] = part(0, H), all["l.0.k.w"] = part(H, H), all["l.0.v.w"] = part(2 * H, 2 * H);
    all["l.0.qkv.b"] = f32({4 * H}, std::vector<float>(std::size_t(4 * H), 2.5f));
    const iso::scratch_folder f;
    put(f, all, R"({"model_type": "llama"})");
    const auto folder = io::open_model(f.at(""));
    ASSERT_TRUE(folder.ok());
    const auto match = interop::match_weights(*folder, packed_names, s.slots);
    ASSERT_TRUE(match.ok() && match->whole()) << interop::text_of(*match);
    EXPECT_EQ(match->complete, 2u);
    ASSERT_TRUE(interop::load_weights(s, *folder, *match).ok());
    for (std::int64_t r = 0; r < 4 * H; ++r)
      for (std::int64_t c = 0; c < C; ++c) ASSERT_EQ(s.values[0][std::size_t(r * C + c)], value(r, c)) << r << ' ' << c;
    EXPECT_EQ(s.values[1][3], 2.5f);

    ASSERT_TRUE(interop::save_weights(f.at("saved"), s, packed_names, "model.").ok());
    const auto saved = io::open_safetensors(f.at("saved"));
    ASSERT_TRUE(saved.ok() && saved->tensors.size() == 4);
    for (const auto& [name, t] : all) {
      const auto* entry = saved->find("model." + name);
      ASSERT_NE(entry, nullptr) << name;
      EXPECT_EQ(entry->dims, t.dims);
      std::vector<float> ours(std::size_t(entry->elems())), theirs(ours.size());
      ASSERT_TRUE(saved->read_f32(*entry, ours).ok());
      ASSERT_TRUE(io::copy_f32({name, t.type, t.dims, t.bytes}, theirs).ok());
      EXPECT_EQ(ours, theirs) << name;
    }

    all.erase("l.0.k.w");  // a parameter of which a part is missing keeps its values
    put(f, all, R"({"model_type": "llama"})");
    const auto less = io::open_model(f.at(""));
    const auto some = interop::match_weights(*less, packed_names, s.slots);
    ASSERT_TRUE(some.ok() && interop::accept(*less, *some, true).ok());
    EXPECT_EQ(some->complete, 1u);
    s.values[0].assign(s.values[0].size(), 9.0f);
    ASSERT_TRUE(interop::load_weights(s, *less, *some).ok());
    EXPECT_EQ(s.values[0], std::vector<float>(s.values[0].size(), 9.0f));
  }
  fake_session nameless;
  nameless.add("elsewhere", {2});
  const iso::scratch_folder f;
  expect(interop::save_weights(f.at("saved"), nameless, packed_names, {}), errc::invalid_model, "'elsewhere'");
}

iso::result<interop::gpt2_config> config_with(const std::string& text) {
  const iso::scratch_folder f;
  put(f, {{"a", f32({1}, {1})}}, text);
  const auto folder = io::open_model(f.at(""));
  if (!folder) return folder.error();
  return interop::read_gpt2_config(*folder);
}
/// The configuration of the fixture with one field replaced or, if it has no such field, added.
std::string with(const std::string& key, const std::string& value) {
  std::string text = config_of("gpt2");
  const auto at = text.find("\"" + key + "\":");
  if (at == std::string::npos) return "{\"" + key + "\": " + value + "," + text.substr(1);
  const auto end = text.find_first_of(",\n", at);
  return text.substr(0, at) + "\"" + key + "\": " + value + text.substr(end);
}

TEST(gpt2_config, is_refused_where_it_asks_for_what_the_model_does_not_compute) {
  using fields = std::vector<std::pair<std::string, std::string>>;
  for (const auto& [key, value] : fields{{"scale_attn_by_inverse_layer_idx", "true"},
                                         {"reorder_and_upcast_attn", "true"},
                                         {"add_cross_attention", "true"},
                                         {"scale_attn_weights", "false"},
                                         {"n_inner", "95"},
                                         {"activation_function", "\"gelu\""},
                                         {"layer_norm_epsilon", "1e-06"},
                                         {"quantization_config", "{}"}}) {
    const auto r = config_with(with(key, value));
    ASSERT_FALSE(r.ok()) << key;
    EXPECT_EQ(r.error().code, errc::invalid_model);
    EXPECT_NE(r.error().where.find("config.json:"), std::string::npos) << r.error().line();
    EXPECT_TRUE(r.error().where.ends_with(": " + key)) << r.error().line();
  }
  for (const auto& [key, value] : fields{{"n_layer", "0"},
                                         {"n_layer", "1001"},
                                         {"n_layer", "2.0"},
                                         {"n_layer", "\"2\""},
                                         {"n_layer", "null"},
                                         {"n_head", "5"},
                                         {"vocab_size", "99999999999"},
                                         {"n_positions", "-1"},
                                         {"n_embd", "[24]"},
                                         {"n_inner", "\"x\""},
                                         {"resid_pdrop", "1.5"},
                                         {"tie_word_embeddings", "1"},
                                         {"layer_norm_epsilon", "true"}}) {
    const auto r = config_with(with(key, value));
    ASSERT_FALSE(r.ok()) << key << value;
    EXPECT_EQ(r.error().code, errc::bad_format) << r.error().line();
  }
}

TEST(gpt2_config, takes_old_and_equal_forms) {
  const auto good = [](const std::string& text) {
    const auto r = config_with(text);
    EXPECT_TRUE(r.ok()) << (r ? "" : r.error().line());
    return r ? *r : interop::gpt2_config{};
  };
  EXPECT_EQ(good(with("n_inner", "96")).size.width, 24);
  EXPECT_EQ(good(with("activation_function", "\"gelu_pytorch_tanh\"")).size.width, 24);
  EXPECT_EQ(good(with("n_positions", "null,\n \"n_ctx\": 16")).size.context, 16);
  EXPECT_FALSE(good(with("attn_pdrop", "0.0")).one_dropout);
  EXPECT_FALSE(good(with("tie_word_embeddings", "false")).tied);
  const iso::model::gpt g{3, 5, 40, 50257, 1024, 0.25};
  EXPECT_EQ(good(interop::gpt2_config_text(g)).size, g);
}

TEST(gpt2_config, of_an_untied_model_needs_the_head_in_the_folder) {
  const iso::scratch_folder f;
  tensors all = fixture();
  const auto match = [&] {
    put(f, all, with("tie_word_embeddings", "false"));
    const auto folder = io::open_model(f.at(""));
    return interop::match_gpt2(*folder, *interop::read_gpt2_config(*folder), gpt().slots);
  };
  EXPECT_EQ(match().error().code, errc::invalid_model);
  all["lm_head.weight"] = all["transformer.wte.weight"];
  EXPECT_TRUE(match().ok());
}

TEST(gpt2_config, of_other_families_is_known_and_refused_by_name) {
  for (const auto& [kind, name] :
       std::vector<std::pair<std::string, std::string>>{{"bert", "BERT"}, {"llama", "Llama"}, {"qwen2", "Qwen 2"}, {"qwen3", "Qwen 3"}}) {
    const auto r = config_with(config_of(kind));
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, errc::invalid_model);
    EXPECT_EQ(r.error().what, name + " (model_type '" + kind + "') is not a GPT-2");
  }
}

}  // namespace stored_weights_test
