// Llama, Qwen 2 and Qwen 3 as transformers saved them compute here what they compute there, with caches and without, learn, and are saved
// with the same weights; tests/fixtures/make_fixtures.py made the folders.
#include <isotope/interop/llama_folder.hpp>

#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include "../device_there.hpp"
#include "../io/scratch_folder.hpp"
#include "recorded_fixture.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace iso = isotope;
namespace io = isotope::io;
namespace interop = isotope::interop;

namespace llama_folder_test {
using namespace isotope_test;

/// The backend of the build in f32, in which the fixtures were computed.
using target = iso::target<iso::selected_backend, iso::precision::f32, iso::selected::kernel_set>;
using session = iso::device<target>::session;
constexpr int length = 12, vocab = 96;
constexpr std::size_t elems = std::size_t(length) * vocab;  // of the logits of a sequence

class llama_folder : public testing::TestWithParam<std::string> {
 public:
  io::model_folder folder = must(io::open_model(fixture(GetParam())));
  interop::llama_config config = must(interop::read_llama_config(folder));
  recorded there{GetParam()};

  /// Loads plans of one model with the folder's weights.
  template <class... Models> session open(const Models&... of) {
    auto device = isotope_test::there(iso::device<target>::open());
    std::vector<iso::owned_plan> plans;
    (plans.push_back({"plan " + std::to_string(plans.size()), must(iso::plan_inference<target>(of))}), ...);
    session s = must(device->load(std::move(plans)));
    const auto match = must(interop::match_llama(folder, config, s.parameters()));
    must(interop::accept(folder, match, false));
    must(interop::load_weights(s, folder, match));
    return s;
  }
};
std::vector<float> run(session& s, std::size_t plan) {
  must(s.run_plan(plan));
  const auto y = must(s.output<float>("output", plan));
  return {y.begin(), y.end()};
}
/// |a - b| / |b|
double distance(std::span<const float> a, std::span<const float> b) {
  double off = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) off += std::pow(double(a[i]) - double(b[i]), 2), norm += double(b[i]) * double(b[i]);
  return std::sqrt(off / norm);
}
double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += double(a[i]) * double(b[i]);
    aa += double(a[i]) * double(a[i]);
    bb += double(b[i]) * double(b[i]);
  }
  return ab / std::sqrt(aa * bb);
}

TEST_P(llama_folder, has_the_logits_of_transformers_with_caches_and_without) {
  const auto ids = there.ids("ids");
  const auto expected = there.floats("logits");
  const auto& g = config.size;
  session all = open(iso::model::llama_logits_of{g, 2, length});
  must(all.set<std::int32_t>("tokens", ids, 0));
  const auto whole = run(all, 0);
  // Logits are up to 10; sums of 24 to 96 products in f32 are apart by some 1e-5 in any order, a wrong scale or rotation by more than 0.1.
  EXPECT_LE(apart(whole, expected), 1e-3);
  EXPECT_GE(cosine(whole, expected), 0.99999);

  // Both sequences in two slots, packed in parts of 1 and 5 tokens; the last part has an idle row.
  const int parts[] = {1, 5};
  const auto cached = [&](int tokens) { return iso::model::llama_cached_logits_of{g, 2, tokens}; };
  session s = open(cached(parts[0]), cached(parts[1]));
  for (std::size_t plan = 0; plan < 2; ++plan) {
    const std::size_t rows = std::size_t(parts[plan]);
    const auto tokens = must(s.input<std::int32_t>("tokens", plan)), sequence = must(s.input<std::int32_t>("sequence", plan)),
               position = must(s.input<std::int32_t>("position", plan));
    for (std::size_t first = 0; first < ids.size(); first += rows) {
      for (std::size_t k = 0; k < rows; ++k) {
        const std::size_t i = first + k;
        const bool idle = i >= ids.size();
        tokens[k] = idle ? 0 : ids[i % 2 * length + i / 2];
        sequence[k] = idle ? -1 : std::int32_t(1 - i % 2);
        position[k] = idle ? -1 : std::int32_t(i / 2);
      }
      const auto y = run(s, plan);
      for (std::size_t k = 0; k < rows && first + k < ids.size(); ++k) {
        const std::size_t i = first + k;
        EXPECT_LE(distance(std::span(y).subspan(k * vocab, vocab), std::span(whole).subspan(i % 2 * elems + i / 2 * vocab, vocab)), 1e-5)
            << "token " << i / 2 << " in parts of " << rows;
      }
    }
  }
}
TEST_P(llama_folder, learns_and_is_saved_with_the_weights_that_transformers_wrote) {
  const auto ids = there.ids("ids");
  auto device = isotope_test::there(iso::device<iso::selected>::open());
  auto s = must(device->load(must(iso::plan_training<iso::selected>(iso::model::llama_loss_of{config.size, 2, length}))));
  s.initialize(3);
  must(interop::load_weights(s, folder, must(interop::match_llama(folder, config, s.parameters()))));
  const iso::scratch_folder f;
  must(interop::save_llama(f.at("saved"), s, config.size));
  const auto saved = must(io::open_model(f.at("saved")));
  EXPECT_EQ(must(interop::read_llama_config(saved)).size, config.size);
  ASSERT_EQ(saved.size(), folder.size());
  for (std::size_t k = 0; k < folder.size(); ++k) {
    ASSERT_EQ(saved.tensor(k).name, folder.tensor(k).name);
    std::vector<float> ours(std::size_t(saved.tensor(k).elems())), theirs(std::size_t(folder.tensor(k).elems()));
    must(saved.file_of(k).read_f32(saved.tensor(k), ours));
    must(folder.file_of(k).read_f32(folder.tensor(k), theirs));
    EXPECT_EQ(ours, theirs) << saved.tensor(k).name;
  }

  must(s.template set<std::int32_t>("tokens", ids));
  must(s.template set<std::int32_t>("targets", ids));  // each token is to find itself
  const double before = s.run({.optimizer_step = 1, .learning_rate = 1e-2f}).loss;
  double loss = before;
  for (int i = 2; i <= 40; ++i) loss = s.run({.optimizer_step = i, .learning_rate = 1e-2f}).loss;
  EXPECT_TRUE(loss < 0.2 * before) << before << " to " << loss;
}
INSTANTIATE_TEST_SUITE_P(, llama_folder, testing::Values("llama", "qwen2", "qwen3"), [](const auto& kind) { return kind.param; });

/// The refusal of the fixture's configuration with `from` replaced by `to`.
std::string refusal(std::string_view kind, std::string_view from, std::string_view to) {
  const iso::scratch_folder f;
  std::filesystem::copy(fixture(kind), f.at("model"));
  const auto bytes = must(io::read_file(fixture(kind) + "/config.json"));
  std::string text(reinterpret_cast<const char*>(bytes.view().data()), bytes.view().size());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::ofstream(f.at("model/config.json")) << text;
  const auto r = interop::read_llama_config(must(io::open_model(f.at("model"))));
  return r ? std::string("read") : r.error().line().substr(f.at("model/").size());
}
TEST(llama_config, refuses_by_name_what_is_not_computed) {
  const struct {
    std::string_view kind, from, to, says;
  } cases[] = {
      {"llama", "\"rope_type\": \"llama3\"", "\"rope_type\": \"yarn\"", "rope_type: is \"yarn\""},
      {"llama", "\"rope_theta\": 100.0", "\"rope_theta\": 100.0, \"beta_fast\": 32", "beta_fast: is set in rope_parameters"},
      {"llama", "\"high_freq_factor\": 4.0,", "", "high_freq_factor: is missing"},
      {"llama", "\"high_freq_factor\": 4.0", "\"high_freq_factor\": 0.5", "0 < low < high"},
      {"llama", "\"attention_bias\": false", "\"attention_bias\": true", "attention_bias: is true"},
      {"llama", "\"mlp_bias\": false", "\"mlp_bias\": true", "mlp_bias: is true"},
      {"llama", "\"silu\"", "\"gelu\"", "hidden_act: is \"gelu\""},
      {"llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "not a multiple of key-value heads 3"},
      {"qwen2", "\"use_sliding_window\": false", "\"use_sliding_window\": true", "use_sliding_window: is true"},
      {"qwen2", "\"full_attention\"", "\"sliding_attention\"", "layer_types: has \"sliding_attention\""},
      {"qwen3", "\"head_dim\": 8,", "", "head_dim: is missing"},
      {"qwen3", "\"head_dim\": 8", "\"head_dim\": 7", "head size 7 is odd"},
      {"qwen3", "\"vocab_size\": 96", "\"vocab_size\": 96, \"quantization_config\": {}", "quantization_config: is set"},
      {"qwen3", "\"rope_theta\": 10000.0", "\"rope_theta\": 10000.0, \"partial_rotary_factor\": 0.5", "partial_rotary_factor: is 0.5"},
  };
  for (const auto& c : cases) {
    const std::string line = refusal(c.kind, c.from, c.to);
    EXPECT_NE(line.find(c.says), std::string::npos) << line;
  }
  EXPECT_EQ(refusal("qwen2", "\"num_attention_heads\": 4", "\"head_dim\": null, \"num_attention_heads\": 4"), "read");
}

// The counts of the published models.
static_assert(parameter_count(iso::model::llama_sizes[0].size) == 1235814400);
static_assert(parameter_count(iso::model::llama_sizes[1].size) == 8030261248);
static_assert(parameter_count(iso::model::llama_sizes[2].size) == 494032768);
static_assert(parameter_count(iso::model::llama_sizes[4].size) == 596049920);
static_assert(validate(iso::model::llama_sizes[6].size).empty());
static_assert(!validate(iso::model::llama{.heads = 6, .kv_heads = 4}).empty());
static_assert(!validate(iso::model::llama{.head_size = 7}).empty());

}  // namespace llama_folder_test
