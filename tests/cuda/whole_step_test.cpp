/// A step of decoding as one launch: which launches it takes the place of is checked anywhere, and its results, against those of separate launches, on a GPU of compute capability 9.0.
#include "decode_launches.hpp"

namespace isotope::cuda {
namespace halves_test {

TEST(cuda_whole_step, takes_the_place_of_all_launches) {
  launches l(small, 1, hopper());
  const std::size_t before = l.all.size();
  ASSERT_TRUE(l.join_step());
  EXPECT_EQ(l.layers, 2u);
  ASSERT_EQ(l.all.size(), before - 3 - 2 * 5 - 2 + 1);
  const dispatch& d = l.all.back();
  EXPECT_EQ(d.function, "decode_step_768");
  EXPECT_TRUE(d.count.together);
  EXPECT_EQ(d.count.x, 12u * 8u);
  EXPECT_LE(d.count.shared_bytes, hopper().shared_bytes);
  constexpr std::size_t most_arguments = 32764;  // of kernels from compute capability 7.0 on
  EXPECT_LE(d.arguments.size(), most_arguments);
  EXPECT_EQ(d.maps.size(), 1u + 2u * 4u);
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
TEST(cuda_whole_step, is_left_out_for_more_rows_or_layers_and_on_other_devices) {
  const auto joins = [](const model::gpt& g, int rows, const device_limits& d = hopper()) { return launches(g, rows, d).join_step(d); };
  EXPECT_TRUE(joins(small, 1));
  EXPECT_FALSE(joins(small, 2));
  EXPECT_TRUE(joins({12, 12, 768, 5003, 1024}, 1));
  EXPECT_FALSE(joins({13, 12, 768, 5003, 1024}, 1));
  EXPECT_FALSE(joins({2, 12, 768, 5003, 2048}, 1)) << "positions";
  device_limits other = hopper();
  other.compute = 100;
  EXPECT_FALSE(joins(small, 1, other));
  other = hopper();
  other.shared_bytes = gpu::decode_step_bytes(768) - 1;
  EXPECT_FALSE(joins(small, 1, other)) << "shared memory";
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

}  // namespace halves_test
}  // namespace isotope::cuda
