/// Layers of decoding as two launches: which runs of launches become halves is checked anywhere, and their results, against those of separate launches, on a GPU of compute capability 9.0.
#include "decode_launches.hpp"

#include <isotope/kernels/cuda/joined/row_norms.hpp>

namespace isotope::cuda {
namespace halves_test {

TEST(cuda_halves, take_the_place_of_all_launches_of_layers_and_logits) {
  for (const int rows : {1, 2, 8}) {
    launches l(small, rows, hopper());
    const std::size_t before = l.all.size();
    l.join();
    EXPECT_EQ(l.layers, 2u) << rows << ' ' << ::testing::PrintToString(l.names());
    ASSERT_EQ(l.all.size(), before - 3 - 2 * 5 - 2 + 2 * 2 + 1) << rows;
    const std::string before_name = rows == 1 ? "decode_" : "decode_few_";
    const auto names = l.names();
    const std::vector<std::string> last(names.end() - 5, names.end());
    std::vector<std::string> wanted;
    for (const char* what : {"attention", "mlp", "attention", "mlp", "logits"}) wanted.push_back(before_name + what + "_768");
    EXPECT_EQ(last, wanted);
    // Each step of the plan that a launch did is done by one still, and a half waits for the one before alone, so that it starts early.
    std::vector<int> done(l.steps);
    for (const dispatch& d : l.all) {
      ++done[std::size_t(d.step)];
      if (d.joined >= 0) ++done[std::size_t(d.joined)];
      for (const auto k : d.also) ++done[std::size_t(k)];
    }
    for (const int n : done) EXPECT_LE(n, 1);
    EXPECT_EQ(std::count(done.begin(), done.end(), 1), std::ptrdiff_t(before + 2 * 3))
        << "two norms and an append of each layer were joined before";
    const auto waits = graph_edges(l.all);
    EXPECT_TRUE(find_hazards(l.all, waits).empty());
    const auto early = early_starts(l.all, waits, hopper());
    EXPECT_EQ(std::vector<std::uint8_t>(early.end() - 4, early.end()), std::vector<std::uint8_t>(4, 1));
  }
}
TEST(cuda_halves, are_left_out_for_everything_that_their_kernels_do_not_take) {
  const auto layers = [](const model::gpt& g, int rows, const device_limits& d = hopper(), bool batch_invariant = false) {
    launches l(g, rows, d, batch_invariant);
    l.join(d);
    return l.layers;
  };
  EXPECT_EQ(layers(small, 1), 2u);
  EXPECT_EQ(layers(small, 9), 0u) << "rows";
  EXPECT_EQ(layers(small, 1, hopper(), true), 0u) << "rows are to have the same bits in every batch";
  EXPECT_EQ(layers({2, 12, 768, 5003, 2048}, 1), 0u) << "positions";
  EXPECT_EQ(layers({2, 6, 768, 5003, 1024}, 1), 0u) << "elements of a head";
  EXPECT_EQ(layers({2, 16, 1024, 5003, 1024}, 1), 0u) << "columns";
  device_limits other = hopper();
  other.compute = 100;
  EXPECT_EQ(layers(small, 1, other), 0u);
  other = hopper();
  other.switches.no_matrix_units = true;
  EXPECT_EQ(layers(small, 1, other), 0u);
  other = hopper();
  other.shared_bytes = 100 << 10;
  EXPECT_EQ(layers(small, 1, other), 0u);
}
TEST(cuda_halves, are_left_out_if_anything_else_touches_what_they_no_longer_write) {
  const auto layers = [](const auto& change) {
    launches l(small, 1, hopper());
    l.join(change);
    return l.layers;
  };
  /// The last launch that the halves replace is that of the logits; before it are the norm, and the five of a layer.
  const auto behind = [](std::vector<dispatch>& all, std::size_t back) -> dispatch& { return all[all.size() - 1 - back]; };
  ASSERT_EQ(layers([](auto&) {}), 2u);
  EXPECT_EQ(layers([&](auto& all) {
              dispatch reader = behind(all, 0);
              reader.code = nullptr, reader.reads = {behind(all, 2).writes[0]}, reader.writes = {{100, 16}};
              all.push_back(reader);
            }),
            0u)
      << "a later launch reads the last residual";
  EXPECT_EQ(layers([&](auto& all) {
              dispatch between = behind(all, 0);
              between.code = nullptr, between.reads = {{100, 16}}, between.writes = {{200, 16}};
              all.insert(all.end() - 4, between);
            }),
            0u)
      << "another launch is between them";
  const auto with = [&](std::size_t back, const auto& edit) {
    return layers([&](auto& all) {
      dispatch& d = behind(all, back);
      auto g = arguments_in<gpu::gemm>(d, fatbins::matmul_rows_mma);
      ASSERT_TRUE(g);
      edit(*g);
      std::memcpy(d.arguments.data(), &*g, sizeof *g);
    });
  };
  EXPECT_EQ(with(2, [](gpu::gemm&) {}), 2u);
  EXPECT_EQ(with(2, [](gpu::gemm& g) { g.alpha = 2; }), 0u) << "one layer and no logits behind it";
  EXPECT_EQ(with(2, [](gpu::gemm& g) { g.operands[1].at += 1536; }), 0u) << "another residual";
  EXPECT_EQ(with(2, [](gpu::gemm& g) { g.b.line += 8; }), 0u);
  EXPECT_EQ(with(3, [](gpu::gemm& g) { g.norm.centered = 0; }), 0u);
  EXPECT_EQ(with(3, [](gpu::gemm& g) { g.fast = gpu::case_bias_gelu_erf; }), 0u);
  EXPECT_EQ(with(3, [](gpu::gemm& g) { g.chain[0].store = 0; }), 0u) << "it writes what GELU is computed from, too";
  EXPECT_EQ(with(4, [](gpu::gemm& g) { g.a.at += 1536; }), 0u) << "not of the attention's result";
  EXPECT_EQ(with(0, [](gpu::gemm& g) { g.beta = 1; }), 0u);
  for (const int changed : {0, 1, 2}) {
    launches l(small, 1, hopper());
    const std::size_t before = l.all.size();
    l.join([&](auto& all) {
      if (changed < 2) all[std::size_t(changed)].code = nullptr;
      else all[2].writes[0].end -= 2;
    });
    EXPECT_EQ(l.layers, 2u);
    ASSERT_EQ(l.all.size(), before - 2 * 5 - 2 + 2 * 2 + 1) << "rows that something else computes are read: " << changed;
    EXPECT_EQ(l.names()[3], "decode_attention_768");
  }
  EXPECT_EQ(with(7, [](gpu::gemm& g) { g.b.at += 8; }), 1u) << "the layers behind it have halves";
}

constexpr model::gpt many_words{2, 12, 768, 17003, 1024};

TEST(cuda_decoding_of_many_rows, takes_seven_launches_a_layer_that_all_start_early) {
  if (!fatbins::attention_cached_hopper.there()) GTEST_SKIP() << "this build has no code for Hopper";
  for (const int rows : {17, 64}) {
    launches l(many_words, rows, hopper());
    l.join();
    EXPECT_EQ(l.layers, 0u);
    const auto names = l.names();
    std::vector<std::string> wanted;
    const bool small_tiles = rows == 17;
    const std::string across = small_tiles ? "matmul_rows_hopper_16x48" : "matmul_rows_tile_32x48",
                      deep = small_tiles ? "matmul_rows_hopper_deep_16x16" : "matmul_rows_hopper_deep_32x16";
    for (int k = 0; k < 2; ++k)
      for (const std::string& name : {std::string("norm_up_to_768_bf16"), across, std::string("attention_cached_copies_bf16_8_1"),
                                      std::string("matmul_rows_hopper_16x48"), std::string("norm_up_to_768_bf16"), across, deep})
        wanted.push_back(name);
    wanted.insert(wanted.end(), {"norm_up_to_768_bf16", "matmul_wide_hopper"});
    ASSERT_GE(names.size(), wanted.size());
    EXPECT_EQ(std::vector<std::string>(names.end() - std::ptrdiff_t(wanted.size()), names.end()), wanted) << rows;
    const auto waits = graph_edges(l.all);
    EXPECT_TRUE(find_hazards(l.all, waits).empty());
    const auto early = early_starts(l.all, waits, hopper());
    EXPECT_EQ(std::vector<std::uint8_t>(early.end() - 15, early.end()), std::vector<std::uint8_t>(15, 1));
    for (const dispatch& d : l.all) EXPECT_LE(d.count.shared_bytes, hopper().shared_bytes) << d.function;
  }
}
TEST(cuda_decoding_of_many_rows, takes_five_launches_a_layer_where_products_normalise_their_rows) {
  if (!fatbins::matmul_rows_normed_hopper.there()) GTEST_SKIP() << "this build has no code for Hopper";
  for (const int rows : {17, 64}) {
    launches l(many_words, rows, hopper());
    const std::size_t before = l.all.size();
    row_norms(l.all, l.outputs, hopper());
    ASSERT_EQ(l.all.size(), before - 2 * 2) << rows;
    const auto names = l.names();
    const std::string normed = rows == 17 ? "matmul_rows_normed_16x48" : "matmul_rows_normed_32x48",
                      deep = rows == 17 ? "matmul_rows_hopper_deep_16x16" : "matmul_rows_hopper_deep_32x16";
    std::vector<std::string> wanted;
    for (int k = 0; k < 2; ++k)
      wanted.insert(wanted.end(), {normed, "attention_cached_copies_bf16_8_1", "matmul_rows_hopper_16x48", normed, deep});
    wanted.insert(wanted.end(), {"norm_up_to_768_bf16", "matmul_wide_hopper"});
    EXPECT_EQ(std::vector<std::string>(names.end() - std::ptrdiff_t(wanted.size()), names.end()), wanted) << rows;
    const auto waits = graph_edges(l.all);
    EXPECT_TRUE(find_hazards(l.all, waits).empty());
    const auto early = early_starts(l.all, waits, hopper());
    EXPECT_EQ(std::vector<std::uint8_t>(early.end() - 11, early.end()), std::vector<std::uint8_t>(11, 1));
    for (const dispatch& d : l.all) EXPECT_LE(d.count.shared_bytes, hopper().shared_bytes) << d.function;
  }
  const auto joined = [](const model::gpt& g, int rows, const auto& change, const device_limits& d = hopper(),
                         bool batch_invariant = false) {
    launches l(g, rows, d, batch_invariant);
    change(l.all, l.outputs);
    const std::size_t before = l.all.size();
    row_norms(l.all, l.outputs, d);
    return before - l.all.size();
  };
  const auto as_they_are = [](auto&, auto&) {};
  EXPECT_EQ(joined(many_words, 64, as_they_are), 4u);
  EXPECT_EQ(joined(many_words, 16, as_they_are), 0u) << "rows";
  EXPECT_EQ(joined(many_words, 65, as_they_are), 0u) << "rows";
  EXPECT_EQ(joined(many_words, 64, as_they_are, hopper(), true), 0u) << "rows are to have the same bits in every batch";
  EXPECT_EQ(joined({2, 16, 1024, 5003, 1024}, 64, as_they_are), 0u) << "columns";
  device_limits other = hopper();
  other.compute = 100;
  EXPECT_EQ(joined(many_words, 64, as_they_are, other), 0u);
  EXPECT_LT(joined(many_words, 64, [](auto& all, range& kept) { kept = all[3].writes[0]; }), 4u) << "normalised rows are kept";
  EXPECT_EQ(joined(many_words, 64,
                   [](auto& all, auto&) {
                     dispatch reader = all.back();
                     reader.code = nullptr, reader.reads = {all[3].writes[0]}, reader.writes = {{100, 16}};
                     all.insert(all.begin() + 5, reader);
                   }),
            3u)
      << "another launch reads normalised rows";
}
TEST(cuda_decoding_of_many_rows, does_not_read_caches_early_that_a_launch_before_appends_to) {
  if (!fatbins::attention_cached_hopper.there()) GTEST_SKIP() << "this build has no code for Hopper";
  launches l(many_words, gpu::cached_most_appended + 1, hopper());
  const auto waits = graph_edges(l.all);
  const auto early = early_starts(l.all, waits, hopper());
  int seen = 0;
  for (std::size_t i = 0; i < l.all.size(); ++i) {
    if (l.all[i].function != "attention_cached_copies_bf16_8_1") continue;
    ++seen;
    EXPECT_EQ(early[i], 0) << "the rows are appended by a launch of their own";
    EXPECT_EQ(l.all[i].count.x, 3u * 132u);
  }
  EXPECT_EQ(seen, 2);
}
TEST(cuda_decoding_of_many_rows, attends_by_the_same_kernel_with_any_number_of_rows_where_bits_must_not_depend_on_it) {
  if (!fatbins::attention_cached_hopper.there()) GTEST_SKIP() << "this build has no code for Hopper";
  using kernel = std::pair<std::string, std::uint32_t>;  // and the blocks that divide the positions of a row
  const auto attention = [](const model::gpt& g, int rows, bool batch_invariant) {
    launches l(g, rows, hopper(), batch_invariant);
    for (const dispatch& d : l.all)
      if (d.code == &fatbins::attention_cached_hopper) return kernel(d.function, d.count.cluster);
    return kernel();
  };
  const kernel copies("attention_cached_copies_bf16_8_1", 1);
  const auto divided = [](std::uint32_t blocks) { return kernel("attention_cached_hopper_bf16_8_1", blocks); };
  constexpr model::gpt longer{2, 12, 768, 5003, 2048};
  for (const int rows : {1, 2, 64, 65}) EXPECT_EQ(attention(many_words, rows, true), copies) << rows;
  for (const int rows : {1, 64}) EXPECT_EQ(attention(longer, rows, true), divided(8)) << rows;
  EXPECT_EQ(attention(many_words, 1, false), divided(4));
  EXPECT_EQ(attention(many_words, 8, false), divided(2));
  EXPECT_EQ(attention(many_words, 64, false), copies);
  EXPECT_EQ(attention(longer, 64, false), copies);
}

TEST(cuda_halves, give_the_logits_of_separate_launches_step_by_step) {
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  for (const int rows : {1, 2, 3, 8}) {
    // The emulator takes half a second for each step: the form of one row and that of most rows.
    if (cuda_test::emulated() && (rows == 2 || rows == 3)) continue;
    on_a_device one(small, rows, true), other(small, rows, false);
    ASSERT_TRUE(one.has_halves());
    ASSERT_FALSE(other.has_halves());
    compare_steps(one, other, rows);
  }
}
TEST(cuda_decoding_of_many_rows, gives_the_logits_of_eight_rows_at_a_time) {
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  constexpr int some = 8;
  for (const int rows : {64, 40, 24}) {
    if (cuda_test::emulated() && rows != 24) continue;
    const bool norms = rows != 40;  // products normalise their rows
    on_a_device many(many_words, rows, true, true, 0, false, norms), apart(many_words, rows, true, false),
        few(many_words, rows, true, true, some);
    const std::size_t V = std::size_t(many_words.vocab);
    const auto compare = [&](const decoding& d, int seed, const char* what) {
      const auto a = many.step(d, seed);
      const auto separate = apart.step(d, seed);
      EXPECT_TRUE(difference(a, separate, 0, a.size()) <= (norms ? tolerance : 0)) << what << ": " << difference(a, separate, 0, a.size());
      if (!cuda_test::emulated()) { EXPECT_EQ(a, many.step(d, seed)) << what << ": the same step gives the same bits"; }
      for (std::size_t first = 0; first < std::size_t(rows); first += some) {
        const auto part = [&](const std::vector<std::int32_t>& all) {
          return std::vector<std::int32_t>(all.begin() + std::ptrdiff_t(first), all.begin() + std::ptrdiff_t(first + some));
        };
        const auto b = few.step({part(d.sequence), part(d.position)}, seed, first);
        for (std::size_t r = 0; r < std::size_t(some); ++r) {
          const std::vector<float> mine(a.begin() + std::ptrdiff_t((first + r) * V), a.begin() + std::ptrdiff_t((first + r + 1) * V)),
              theirs(b.begin() + std::ptrdiff_t(r * V), b.begin() + std::ptrdiff_t((r + 1) * V));
          EXPECT_TRUE(difference(mine, theirs, 0, V) <= tolerance)
              << what << ": row " << first + r << " of " << rows << " differs by " << difference(mine, theirs, 0, V);
        }
      }
    };
    decoding d;
    for (int r = 0; r < rows; ++r) d.sequence.push_back(rows - 1 - r), d.position.push_back(0);
    for (int t = 0; t < 20; t += cuda_test::emulated() ? 19 : 1) {
      for (auto& p : d.position) p = t;
      compare(d, t, "one after the other");
    }
    decoding together;
    for (int r = 0; r < rows; ++r) together.sequence.push_back(r % 3), together.position.push_back(20 + r / 3);
    compare(together, 100, "tokens of three sequences");
  }
}
TEST(cuda_halves, attend_to_all_positions_of_a_full_cache) {
  if (cuda_test::emulated()) GTEST_SKIP() << "a thousand steps take minutes in the emulator";
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  on_a_device one(small, 1, true), other(small, 1, false);
  for (int t = 0; t < 1024; ++t) {
    const auto a = one.step({{0}, {t}}, t), b = other.step({{0}, {t}}, t);
    const double d = difference(a, b, 0, a.size());
    ASSERT_TRUE(d <= tolerance) << t << ": " << d;
  }
}

}  // namespace halves_test
}  // namespace isotope::cuda
