/// A step of decoding as one launch: which launches it takes the place of is checked anywhere, and its results, against those of separate launches, on a GPU of compute capability 9.0.
#include "decode_launches.hpp"

namespace isotope::cuda {
namespace halves_test {

class cuda_whole_step_of : public ::testing::TestWithParam<int> {};
TEST_P(cuda_whole_step_of, takes_the_place_of_all_launches) {
  const int rows = GetParam();
  launches l(small, rows, hopper());
  const std::size_t before = l.all.size();
  ASSERT_TRUE(l.join_step());
  EXPECT_EQ(l.layers, 2u);
  ASSERT_EQ(l.all.size(), before - 3 - 2 * 5 - 2 + 1);
  const dispatch& d = l.all.back();
  EXPECT_EQ(d.function, rows == 1 ? "decode_step_768" : "decode_step_few_768");
  EXPECT_TRUE(d.count.together);
  EXPECT_EQ(d.count.x, 12u * 8u);
  EXPECT_LE(d.count.shared_bytes, hopper().shared_bytes);
  constexpr std::size_t most_arguments = 32764;  // of kernels from compute capability 7.0 on
  EXPECT_LE(d.arguments.size(), most_arguments);
  EXPECT_EQ(d.maps.size(), 1u + 2u * (rows == 1 ? 4u : 6u));
  for (const tensor_map& m : d.maps) {
    EXPECT_EQ(m.argument_offset % 64, 0u);
    EXPECT_LE(m.argument_offset + sizeof(gpu::tensor_map_bytes), d.arguments.size());
  }
  std::vector<int> done(l.steps);
  for (const dispatch& x : l.all) {
    ++done[std::size_t(x.step)];
    if (x.joined >= 0) ++done[std::size_t(x.joined)];
    for (const auto k : x.also) ++done[std::size_t(k)];
  }
  for (const int n : done) EXPECT_LE(n, 1);
  EXPECT_EQ(std::count(done.begin(), done.end(), 1), std::ptrdiff_t(before + 2 * 3));
  EXPECT_TRUE(find_hazards(l.all, graph_edges(l.all)).empty());
}
INSTANTIATE_TEST_SUITE_P(rows, cuda_whole_step_of, ::testing::Values(1, 2, 8));
TEST(cuda_whole_step, is_left_out_for_more_rows_or_layers_and_on_other_devices) {
  const auto joins = [](const model::gpt& g, int rows, const device_limits& d = hopper()) { return launches(g, rows, d).join_step(d); };
  EXPECT_TRUE(joins(small, 1));
  EXPECT_TRUE(joins(small, 8));
  EXPECT_FALSE(joins(small, 9));
  EXPECT_TRUE(joins({12, 12, 768, 5003, 1024}, 1));
  EXPECT_FALSE(joins({13, 12, 768, 5003, 1024}, 1));
  EXPECT_FALSE(joins({2, 12, 768, 5003, 2048}, 1)) << "positions";
  device_limits other = hopper();
  other.compute = 100;
  EXPECT_FALSE(joins(small, 1, other));
  other = hopper();
  other.shared_bytes = gpu::decode_step_bytes(768) - 1;
  EXPECT_FALSE(joins(small, 1, other)) << "shared memory";
  other.shared_bytes = gpu::decode_step_few_bytes(768) - 1;
  EXPECT_FALSE(joins(small, 2, other)) << "shared memory";
}

TEST(cuda_whole_step, gives_the_logits_of_separate_launches_at_all_positions_of_a_cache) {
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  on_a_device one(small, 1, true, true, 0, true), other(small, 1, false);
  if (!one.has_whole_step()) GTEST_SKIP() << "twelve clusters of eight blocks do not fit this GPU at once";
  for (int t = 0; t < 1024; t += cuda_test::emulated() ? 700 : 1) {
    const auto a = one.step({{0}, {t}}, t), b = other.step({{0}, {t}}, t);
    const double d = difference(a, b, 0, a.size());
    ASSERT_TRUE(d <= tolerance) << t << ": " << d;
    if (t % 50 == 0) { ASSERT_EQ(a, one.step({{0}, {t}}, t)) << "the same step gives the same bits"; }
  }
  const auto a = one.step({{-1}, {3}}, 5), b = other.step({{-1}, {3}}, 5);
  EXPECT_TRUE(difference(a, b, 0, a.size()) <= tolerance) << "an idle row";
}
TEST(cuda_whole_step, of_several_rows_gives_the_logits_of_separate_launches) {
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  const std::vector<int> some = cuda_test::emulated() ? std::vector<int>{3} : std::vector<int>{2, 3, 4, 5, 8};
  for (const int rows : some) {
    on_a_device one(small, rows, true, true, 0, true), other(small, rows, false);
    if (!one.has_whole_step()) GTEST_SKIP() << "twelve clusters of eight blocks do not fit this GPU at once";
    if (cuda_test::emulated()) {  // a step takes two seconds: two rows with one place, and an idle one
      const decoding d{{1, 1, -1}, {64, 64, 3}};
      const auto a = one.step(d, 0), b = other.step(d, 0);
      EXPECT_TRUE(difference(a, b, 0, a.size()) <= tolerance) << difference(a, b, 0, a.size());
    } else {
      compare_steps(one, other, rows);
    }
  }
}
TEST(cuda_whole_step, of_several_rows_attends_to_all_positions_and_to_no_other_row) {
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  const std::vector<int> some = cuda_test::emulated() ? std::vector<int>{8} : std::vector<int>{2, 4, 8};
  for (const int rows : some) {
    on_a_device one(small, rows, true, true, 0, true), other(small, rows, false);
    if (!one.has_whole_step()) GTEST_SKIP() << "twelve clusters of eight blocks do not fit this GPU at once";
    const std::size_t V = std::size_t(small.vocab);
    decoding d;
    for (int r = 0; r < rows; ++r) d.sequence.push_back(r), d.position.push_back(0);
    for (int t = cuda_test::emulated() ? 1022 : 0; t < 1024; t += cuda_test::emulated() ? 2 : 1) {
      for (int r = 0; r < rows; ++r) d.position[std::size_t(r)] = r % 2 == 0 ? t : t / 2;
      const auto a = one.step(d, t), b = other.step(d, t);
      for (int r = 0; r < rows; ++r) {
        const double apart = difference(a, b, std::size_t(r) * V, V);
        ASSERT_TRUE(apart <= tolerance) << "row " << r << " of " << rows << " at " << t << ": " << apart;
      }
      if (t % 100 != 22) continue;
      decoding alone = d;  // the first row is the same whatever the others do
      for (int r = 1; r < rows; ++r) alone.sequence[std::size_t(r)] = -1;
      const auto c = one.step(alone, t);
      EXPECT_TRUE(std::equal(c.begin(), c.begin() + std::ptrdiff_t(V), a.begin())) << rows << " rows at " << t;
    }
  }
}

}  // namespace halves_test
}  // namespace isotope::cuda
