// A GPT-2 that transformers saved computes here what it computes there, and is saved as it was; tests/fixtures/make_fixtures.py made the
// folders.
#include <isotope/interop/gpt2_folder.hpp>

#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include "../device_there.hpp"
#include "../io/scratch_folder.hpp"
#include "recorded_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace iso = isotope;
namespace io = isotope::io;
namespace interop = isotope::interop;

namespace gpt2_folder_test {
using namespace isotope_test;

/// The backend of the build in f32: the fixtures are, and bf16 would leave no bound that finds a wrong layout.
using target = iso::target<iso::selected_backend, iso::precision::f32, iso::selected::kernel_set>;
constexpr int prompt = 4, continued = 16, rows = 2, length = 12, window = prompt + continued;

/// Next-token logits of one window at a time, of the weights in a folder.
struct reader {
  interop::gpt2_config config;
  iso::device<target>::session session;

  static reader open(const std::string& path) {
    const auto folder = must(io::open_model(path));
    const auto config = must(interop::read_gpt2_config(folder));
    auto device = isotope_test::there(iso::device<target>::open());
    reader r{config, must(device->load(must(iso::plan_inference<target>(iso::model::gpt_logits_of{config.size, 1, window}))))};
    const auto match = must(interop::match_gpt2(folder, config, r.session.parameters()));
    must(interop::accept(folder, match, false));
    must(interop::load_weights(r.session, folder, match));
    return r;
  }
  /// Logits (window, V); rows past the given ids are of zeros behind them.
  std::vector<float> logits(std::span<const std::int32_t> ids) {
    std::vector<std::int32_t> all(window, 0);
    std::copy(ids.begin(), ids.end(), all.begin());
    must(session.set<std::int32_t>("tokens", all));
    session.run({}, iso::phase_always);
    const auto y = must(session.output<float>("output"));
    return {y.begin(), y.end()};
  }
};

TEST(gpt2_folder, has_the_logits_and_the_greedy_text_of_transformers) {
  reader gpt = reader::open(fixture("gpt2"));
  EXPECT_EQ(gpt.config.size, (iso::model::gpt{2, 4, 24, 96, 32, 0.1}));
  EXPECT_TRUE(gpt.config.one_dropout && gpt.config.tied);
  const recorded there("gpt2");
  const auto ids = there.ids("ids");
  const auto expected = there.floats("logits");
  const std::size_t row = std::size_t(length) * 96;
  ASSERT_EQ(expected.size(), rows * row);
  // Logits are up to 10; sums of 24 to 96 products in f32 are apart by some 1e-5 in any order, a wrong transpose or scale by more than 0.1.
  for (std::size_t b = 0; b < rows; ++b)
    EXPECT_LE(apart(std::span(expected).subspan(b * row, row),
                    std::span<const float>(gpt.logits(std::span(ids).subspan(b * length, length))).first(row)),
              1e-3);
  std::vector<std::int32_t> text(ids.begin(), ids.begin() + prompt);
  for (int i = 0; i < continued; ++i) {
    const auto all = gpt.logits(text);
    const auto last = std::span(all).subspan((text.size() - 1) * 96, 96);
    text.push_back(std::int32_t(std::max_element(last.begin(), last.end()) - last.begin()));
  }
  EXPECT_EQ(std::vector<std::int32_t>(text.begin() + prompt, text.end()), there.ids("generated"));
}

TEST(gpt2_folder, reads_shards_in_f16_without_the_prefix) {
  reader gpt = reader::open(fixture("gpt2_sharded"));
  const recorded there("gpt2_sharded");
  const auto ids = there.ids("ids");
  const auto hidden = there.floats("hidden.2");  // (2, 12, 24), after the last norm: the head is this times the token table
  const auto folder = must(io::open_model(fixture("gpt2_sharded")));
  std::vector<float> wte(96 * 24), expected(std::size_t(length) * 96);
  must(folder.file_of(folder.find("wte.weight")).read_f32(folder.tensor(folder.find("wte.weight")), wte));
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t c = 0; c < 24; ++c) expected[i] += hidden[i / 96 * 24 + c] * wte[i % 96 * 24 + c];
  EXPECT_LE(apart(expected, std::span<const float>(gpt.logits(std::span(ids).first(length))).first(expected.size())), 1e-3);
}

TEST(gpt2_folder, is_saved_with_the_bytes_that_transformers_wrote) {
  using session = iso::device<iso::selected>::session;  // training keeps f32 weights in every precision
  const auto folder = must(io::open_model(fixture("gpt2")));
  const auto config = must(interop::read_gpt2_config(folder));
  auto device = isotope_test::there(iso::device<iso::selected>::open());
  session s = must(device->load(must(iso::plan_training<iso::selected>(iso::model::gpt_loss_of{config.size, 1, 4}))));
  s.initialize(3);
  must(interop::load_weights(s, folder, must(interop::match_gpt2(folder, config, s.parameters()))));
  const iso::scratch_folder f;
  must(interop::save_gpt2(f.at("new/saved"), s, config.size));
  std::vector<std::byte> saved, theirs;
  for (auto [path, to] : {std::pair{f.at("new/saved"), &saved}, std::pair{fixture("gpt2"), &theirs}}) {
    const auto bytes = must(io::read_file(path + "/model.safetensors"));
    to->assign(bytes.view().begin(), bytes.view().end());
  }
  EXPECT_TRUE(saved == theirs) << saved.size() << " bytes, theirs are " << theirs.size();
  EXPECT_EQ(must(interop::read_gpt2_config(must(io::open_model(f.at("new/saved"))))).size, config.size);

  std::filesystem::copy(fixture("gpt2_sharded"), f.at("shards"));
  EXPECT_EQ(interop::save_gpt2(f.at("shards"), s, config.size).error().code, iso::errc::invalid_argument);
  must(s.write(iso::tensor_kind::parameter, 0, std::vector<float>(std::size_t(s.parameters()[0].dims.count()), NAN)));
  const auto r = interop::save_gpt2(f.at("new/saved"), s, config.size);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, iso::errc::non_finite);
  EXPECT_EQ(must(io::read_file(f.at("new/saved/model.safetensors"))).size(), theirs.size());  // the earlier file is still there
}

}  // namespace gpt2_folder_test
