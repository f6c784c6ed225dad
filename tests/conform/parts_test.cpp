/// Unit tests of the parts of the harness: numbers, comparators, generators, records, shrinking.
#include "toy.hpp"

#include <isotope/conform/golden.hpp>
#include <isotope/conform/regressions.hpp>
#include <isotope/conform/shrink.hpp>

#include "../io/scratch_folder.hpp"

namespace isotope::conform {
namespace parts_test {

answer one(double v, double slack = 0) {
  answer a;
  a.resize(1);
  a.set(0, v, slack);
  return a;
}
bool near(double y, const answer& a, comparison by = comparison::scaled, dtype t = dtype::f32, bool gpu = false) {
  double bound = 0;
  return element_bounds(t, {t, gpu, nullptr}).near_enough(y, a, 0, by, bound);
}
TEST(conform_compare, nan_infinity_and_the_edge_of_the_format) {
  EXPECT_TRUE(near(nan, one(nan)));
  EXPECT_FALSE(near(nan, one(1, 1e30)));
  EXPECT_FALSE(near(1, one(nan, 1e30)));
  EXPECT_TRUE(near(infinity, one(infinity)));
  EXPECT_FALSE(near(-infinity, one(infinity)));
  EXPECT_FALSE(near(0x1.FEp127, one(infinity)));
  EXPECT_TRUE(near(infinity, one(1e39)));
  EXPECT_FALSE(near(infinity, one(1e38)));
}
TEST(conform_compare, scaled_ulp_and_exact) {
  EXPECT_TRUE(near(1 + 0x1p-23, one(1 + 0x1.8p-24, 0)));
  EXPECT_FALSE(near(1 + 0x1p-22, one(1, 0x1p-24)));
  EXPECT_TRUE(near(1 + 0x1p-22, one(1, 0x1p-22)));
  EXPECT_FALSE(near(1 + 0x1p-23, one(1), comparison::exact));
  EXPECT_TRUE(near(3, one(3), comparison::exact, dtype::i32));
  EXPECT_FALSE(near(3, one(4, 10), comparison::scaled, dtype::i32)) << "integers are compared exactly, regardless of the tolerance";
  EXPECT_TRUE(near(0, one(0x1p-130), comparison::scaled, dtype::f32, true)) << "a gpu may flush";
  EXPECT_FALSE(near(0, one(0x1p-130), comparison::scaled, dtype::f32, false));
}
TEST(conform_compare, the_mean_square_is_asked_for_where_many_terms_count) {
  array y(shape{400}, dtype::f32);
  answer a;
  a.resize(400);
  for (std::int64_t i = 0; i < 400; ++i) a.set(i, 1 + double(i % 7), 1), y.at[std::size_t(i)] = a.value[std::size_t(i)] * (1 + 1e-5);
  a.nmse = 1e-12;
  EXPECT_FALSE(compare(y, a, comparison::scaled, {}, true).passes());
  EXPECT_TRUE(compare(y, a, comparison::scaled, {}, false).passes());
  a.nmse = 1e-9;
  EXPECT_TRUE(compare(y, a, comparison::scaled, {}, true).passes());
}
TEST(conform_numbers, nearest_rounds_once_to_even) {
  EXPECT_EQ(nearest(dtype::bf16, 1 + 0x1p-8), 1);
  EXPECT_EQ(nearest(dtype::bf16, 1 + 0x1.8p-7), 1 + 0x1p-6);
  EXPECT_EQ(nearest(dtype::bf16, 16777216.0 + 65537), 16777216.0 + 131072) << "if rounded to f32 first, it would be a tie";
  EXPECT_EQ(nearest(dtype::f16, 65520), infinity);
  EXPECT_EQ(nearest(dtype::f32, 0x1p-150), 0);
  for (std::uint32_t i = 0; i < 0x7f80; ++i) {
    bfloat16 x;
    x.bits = std::uint16_t(i);
    ASSERT_EQ(nearest(dtype::bf16, double(float(x))), double(float(x)));
  }
}
TEST(conform_generator, streams_are_the_same_on_every_compiler) {
  stable_hash h;
  std::int64_t streams = 0;
  for (const generator& g : every_generator)
    for (const dtype t : {dtype::f32, dtype::bf16, dtype::f16, dtype::f64, dtype::i32, dtype::boolean})
      for (const int position : {0, 1, 3}) {
        // The generators normal and exponents use logarithms and cosines of the C library, of which 8 digits are the same everywhere.
        const bool of_the_library = g.name == "normal" || g.name == "exponents";
        if (!g.handles(t) || (of_the_library && t != dtype::bf16)) continue;
        ++streams;
        stream(g, {42, t, position, 5, 1, 7}, 100, [&](std::int64_t, double x) {
          std::byte bytes[8] = {};
          encode(t, bytes, std::isnan(x) ? 0.4375 : x);  // all NaN are treated as equal
          h.add(std::string_view(reinterpret_cast<const char*>(bytes), std::size_t(size_of(t))));
        });
      }
  EXPECT_EQ(streams, 204);
  EXPECT_EQ(std::string(hex_text(h.value()).view()), "a92c6cde7a30be24");
  static_assert(seed_of("exp", 1, 2, 3) != seed_of("exp", 1, 3, 2) && seed_of("exp", 1, 2, 3) != seed_of("exp", 2, 2, 3));
}
TEST(conform_generator, all_of_16_bits_gives_every_pattern_once) {
  std::vector<bool> seen(65536);
  stream(generator_of<generators::all_of_16_bits>, {1, dtype::bf16, 0, 1, 0, 0}, 65536, [&](std::int64_t i, double x) {
    const bfloat16 b{float(x)};
    if (std::isnan(x)) seen[std::size_t(i)] = true;
    else seen[b.bits] = true;
  });
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 65536);
}
/// The specification of `twice` with another reference: f(number, index).
template <double (*F)(double, std::int64_t)> spec twice_as() {
  spec s = *find_spec("twice");
  s.reference = [](const call& c, std::span<answer> y) {
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, F(c.in[0][i], i));
  };
  return s;
}
double doubled(double x, std::int64_t) { return 2 * x; }
double doubled_by_another_library(double x, std::int64_t) { return 2 * x * (1 + 0x1p-50); }
double a_millionth_off(double x, std::int64_t) { return 2 * x * (1 + 1e-6); }
double off_in_one_place(double x, std::int64_t i) { return i == 2 ? 2.001 * x : 2 * x; }
double zero_for_nan(double x, std::int64_t) { return std::isnan(x) ? 0 : 2 * x; }
double swapped_signs(double x, std::int64_t i) { return i % 2 == 0 ? -2 * x : 2 * x; }

TEST(conform_golden, a_reference_that_changed_needs_a_new_version) {
  const spec s = twice_as<doubled>();
  const auto samples = make_golden(s);
  EXPECT_EQ(samples.size(), golden_samples);
  const std::string text = golden_text(s, samples);
  EXPECT_TRUE(check_golden(s, text, "twice.json").ok());
  EXPECT_TRUE(check_golden(twice_as<doubled_by_another_library>(), text, "twice.json").ok());
  for (spec changed : {twice_as<a_millionth_off>(), twice_as<off_in_one_place>(), twice_as<zero_for_nan>(), twice_as<swapped_signs>()}) {
    const auto r = check_golden(changed, text, "twice.json");
    ASSERT_FALSE(r.ok());
    EXPECT_NE(r.error().line().find("the reference changed, and the version is still 1"), std::string::npos) << r.error().line();
    EXPECT_NE(r.error().line().find("give op_spec<twice> version 2"), std::string::npos) << r.error().line();
    changed.version = 2;
    EXPECT_EQ(check_golden(changed, text, "twice.json").error().code, errc::version_mismatch);
    EXPECT_TRUE(check_golden(changed, golden_text(changed, make_golden(changed)), "twice.json").ok());
  }
}
TEST(conform_hash, sha256_of_the_standard) {
  EXPECT_EQ(sha256::of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256::of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
TEST(conform_record, a_case_comes_back_as_it_was) {
  test_case c = toy::case_of({3, 4});
  c.in[0].order = {1, 0, 2, 3, 4, 5};
  c.attr.f[1] = infinity;
  c.scalars.seed = ~std::uint64_t(0);
  c.given = std::make_shared<const std::vector<array>>(std::vector<array>{operand_numbers(c, 0)});
  const auto j = io::parse_json(record_of(c), "record");
  ASSERT_TRUE(j.ok());
  const auto back = read_record(*j);
  ASSERT_TRUE(back.ok()) << back.error().line();
  EXPECT_EQ(record_of(*back), record_of(c));
}
TEST(conform_shrink, a_planted_bug_shrinks_to_its_smallest_shape) {
  test_case c = toy::case_of({33, 5});
  c.in.push_back({{5, 40}, dtype::f32, &generator_of<generators::uniform>, 1, 2, row_major});
  int bad_shapes = 0;
  shrinker s([&](const test_case& x) {  // a matmul that is wrong if a has at least 17 rows and 3 columns
    bad_shapes += x.in[0].dims[1] != x.in[1].dims[0] ? 1 : 0;
    return x.in[0].dims[1] == x.in[1].dims[0] && x.in[0].dims[0] >= 17 && x.in[0].dims[1] >= 3;
  });
  const test_case small = s.shrink(c);
  EXPECT_EQ(small.in[0].dims, (shape{17, 3}));
  EXPECT_EQ(small.in[1].dims, (shape{3, 1}));
  EXPECT_LE(s.runs(), 200);
  for (const double x : (*small.given)[0].at) EXPECT_EQ(x, 1) << "numbers do not matter here";
}
TEST(conform_shrink, numbers_that_matter_stay) {
  test_case c = toy::case_of({16});
  const double kept = operand_numbers(c, 0)[11];
  shrinker s([&](const test_case& x) {
    const auto n = x.given != nullptr ? (*x.given)[0].at : operand_numbers(x, 0).at;
    return n.size() == 16 && n[11] == kept;
  });
  const test_case small = s.shrink(c);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ((*small.given)[0].at[i], i == 11 ? kept : 1);
}
TEST(conform_checkpoint, comes_back_and_refuses_damage_and_strangers) {
  scratch_folder folder;
  const std::string path = folder.at("c");
  checkpoint c{"run", 77, {}};
  c.counted.ops["twice"].passed = 3;
  c.counted.ops["twice"].by_kind[0] = 3;
  ASSERT_TRUE(save(c, path).ok());
  const auto back = load_checkpoint(path, "run");
  ASSERT_TRUE(back.ok()) << back.error().line();
  EXPECT_EQ(back->next, 77u);
  EXPECT_EQ(json_of(back->counted), json_of(c.counted));
  EXPECT_EQ(load_checkpoint(path, "other").error().code, errc::model_mismatch);
  std::string text = text_of(c);
  text[80] ^= 1;
  ASSERT_TRUE(io::write_file(path, text).ok());
  EXPECT_EQ(load_checkpoint(path, "run").error().code, errc::corrupt);
  EXPECT_EQ(load_checkpoint(path + "none", "run").error().code, errc::not_found);
}
TEST(conform_regressions, a_new_failure_is_kept_once_and_read_back) {
  scratch_folder folder;
  const test_case c = toy::case_of({7});
  const auto first = add_regression(folder.at("corpus"), c), again = add_regression(folder.at("corpus"), c);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_NE(first->find("/twice/v1/"), std::string::npos);
  const spec* ops[] = {find_spec("twice")};
  const auto all = read_regressions(folder.at("corpus"), ops);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(record_of((*all)[0]), record_of(c));
}

}  // namespace parts_test
}  // namespace isotope::conform
