// Weights in blocks: saved, opened with the bits that they had, and refused in any other shape.
#include <isotope/backend/cpu.hpp>
#include <isotope/generate/batcher.hpp>
#include <isotope/generate/perplexity.hpp>
#include <isotope/interop/quantised_folder.hpp>

#include "../io/scratch_folder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace iso = isotope;
namespace io = isotope::io;
namespace interop = isotope::interop;
using iso::errc;

namespace quantised_folder_test {

using target = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::portable>;
constexpr iso::model::gpt size{2, 2, 32, 40, 16};
const std::vector<std::int32_t> tokens = {1, 7, 39, 0, 22, 13, 8, 30, 2, 2, 19, 5, 33, 6, 11, 4, 17, 28, 3, 1};

template <class T> T must(iso::result<T> r) {
  if (!r) throw std::runtime_error(r.error().line());
  return *std::move(r);
}
iso::device<target> device() { return must(iso::device<target>::open({.threads = 1})); }
/// Saves a GPT-2 of random weights.
void save(const std::string& path) {
  auto session = must(device().load(must(iso::plan_inference<target>(iso::model::gpt_logits_of{size, 1, 4}))));
  session.initialize(5);
  ASSERT_TRUE(interop::save_gpt2(path, session, size).ok());
}
iso::result<void> quantise(const std::string& from, const std::string& to, iso::weight_storage how) {
  const auto folder = must(io::open_model(from));
  const auto config = must(interop::read_gpt2_config(folder));
  const iso::dynamic_plan plan = must(iso::plan_inference<target>(iso::model::gpt_logits_of{size, 1, 4}, 0, true, false, how));
  const auto match = must(interop::match_gpt2(folder, config, plan.slots));
  if (auto r = interop::accept(folder, match, false); !r) return r;
  return interop::save_quantised(to, folder, match, plan.slots);
}
iso::result<iso::perplexity> measured(const std::string& path, iso::weight_storage how, bool a8 = false) {
  const auto folder = io::open_model(path);
  if (!folder) return folder.error();
  const auto config = interop::read_decoder_config(*folder);
  if (!config) return config.error();
  return iso::measure_perplexity<target>(device(), *folder, *config, tokens, {.window = 12, .stored = how, .a8 = a8});
}

TEST(quantised_folder, has_the_bits_of_quantising_while_loading_in_either_format_of_weights) {
  const iso::scratch_folder f;
  save(f.at("gpt2"));
  EXPECT_EQ(interop::storage_of(must(io::open_model(f.at("gpt2")))), nullptr);
  for (const iso::weight_storage how : {iso::weights::q8_0, iso::weights::q4_0}) {
    const std::string name(name_of(how({}, {})));
    ASSERT_TRUE(quantise(f.at("gpt2"), f.at(name), how).ok());
    const auto folder = must(io::open_model(f.at(name)));
    EXPECT_EQ(interop::storage_of(folder), how);
    const auto& t = folder.tensor(folder.find("transformer.h.1.attn.c_attn.weight"));
    EXPECT_EQ(t.type, io::u8_elements);
    EXPECT_EQ(t.dims, (std::vector<std::int64_t>{96, 1, how == &iso::weights::q8_0 ? 34 : 18}));  // stored (in, out) in f32
    EXPECT_EQ(*io::find_note(folder.file_of(0).metadata, "weights"), name);
    const double at_once = must(measured(f.at("gpt2"), how)).nats;
    EXPECT_EQ(must(measured(f.at(name), how)).nats, at_once);
    EXPECT_EQ(must(measured(f.at(name), nullptr)).nats, at_once);
    EXPECT_NE(must(measured(f.at("gpt2"), nullptr)).nats, at_once);
    EXPECT_NE(must(measured(f.at(name), how, true)).nats, at_once);
    const auto again = quantise(f.at(name), f.at("again"), iso::weights::q4_0);
    ASSERT_FALSE(again.ok());
    EXPECT_NE(again.error().line().find("has weights in " + name + " already"), std::string::npos) << again.error().line();
  }
}

TEST(quantised_folder, replaces_no_file) {
  const iso::scratch_folder f;
  save(f.at("gpt2"));
  const auto r = quantise(f.at("gpt2"), f.at("gpt2"), iso::weights::q8_0);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().line().find("has a file 'config.json', which would be replaced"), std::string::npos) << r.error().line();
}

TEST(quantised_folder, in_another_shape_or_with_scales_that_are_not_finite_is_refused) {
  const iso::scratch_folder f;
  save(f.at("gpt2"));
  ASSERT_TRUE(quantise(f.at("gpt2"), f.at("q8"), iso::weights::q8_0).ok());
  const auto whole = must(io::read_safetensors(f.at("q8/model.safetensors")));
  const std::string name = "transformer.h.0.mlp.c_fc.weight";  // (128, 1, 34)
  const auto refused = [&](const std::function<void(io::stored_tensor&)>& change, errc code, std::string_view text) {
    auto all = whole.tensors;
    for (io::stored_tensor& t : all)
      if (t.name == name) change(t);
    ASSERT_TRUE(io::write_safetensors(f.at("q8/model.safetensors"), all, {}).ok());
    const auto r = measured(f.at("q8"), iso::weights::q8_0);
    ASSERT_FALSE(r.ok()) << text;
    EXPECT_EQ(r.error().code, code) << r.error().line();
    EXPECT_NE(r.error().line().find(text), std::string::npos) << r.error().line();
  };
  for (const auto& dims : {std::vector<std::int64_t>{128, 34}, {64, 2, 34}, {1, 128, 34}, {128, 34, 1}, {128, 2, 17}, {4352}})
    refused([&](io::stored_tensor& t) { t.dims = dims; }, errc::model_mismatch, "or U8 [128,1] blocks of 34 (q8_0) or 18 bytes (q4_0)");
  refused([](io::stored_tensor& t) { t.type = {"I8", 1}; }, errc::model_mismatch, "is [128,1,34] of I8");
  std::vector<std::byte> bytes;
  refused(
      [&](io::stored_tensor& t) {
        bytes.assign(t.bytes.begin(), t.bytes.end());
        bytes[34 * 5 + 1] = std::byte(0x7e);  // the scale is NaN
        t.bytes = bytes;
      },
      errc::non_finite, "element 160 is not finite");
}

TEST(perplexity, is_that_of_the_logits_of_each_window) {
  const iso::scratch_folder f;
  save(f.at("gpt2"));
  double nats = 0;
  for (std::size_t at = 0; at + 1 < tokens.size(); at += 12) {
    const auto some = std::min<std::size_t>(12, tokens.size() - 1 - at);
    auto session = must(device().load(must(iso::plan_inference<target>(iso::model::gpt_logits_of{size, 1, int(some)}))));
    const auto folder = must(io::open_model(f.at("gpt2")));
    ASSERT_TRUE(interop::load_decoder(session, folder, must(interop::read_decoder_config(folder))).ok());
    ASSERT_TRUE(session.set<std::int32_t>("tokens", std::span(tokens).subspan(at, some)).ok());
    session.run({}, iso::phase_always);
    const auto logits = must(session.output<float>("output"));
    for (std::size_t i = 0; i < some; ++i) {
      double sum = 0;
      for (std::size_t v = 0; v < std::size_t(size.vocab); ++v) sum += std::exp(double(logits[i * std::size_t(size.vocab) + v]));
      nats += std::log(sum) - double(logits[i * std::size_t(size.vocab) + std::size_t(tokens[at + i + 1])]);
    }
  }
  const auto p = must(measured(f.at("gpt2"), nullptr));
  EXPECT_EQ(p.tokens, 19);
  EXPECT_EQ(p.window, 12);
  EXPECT_NEAR(p.nats, nats / 19, 1e-5);  // sums of 32 terms and of 40 exponentials in f32
  EXPECT_NEAR(p.value(), std::exp(nats / 19), 1e-3);
}

}  // namespace quantised_folder_test
