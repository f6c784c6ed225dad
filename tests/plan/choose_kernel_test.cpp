/// The choice among variants of a kernel: by time, by what rules a variant out, by their order, and what a report says of it.
#include <isotope/plan/choose_kernel.hpp>
#include <isotope/plan/report/dispatches.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace choose_kernel_test {

using isotope::choose_kernel;
using isotope::considered_variant;

/// A tile that takes as long as the tiles of its size that cover N, each `rate` seconds.
struct tile {
  int size;
  double rate;
  struct cost {
    double seconds = 0;
    int tiles = 0;
  };
  struct problem {
    int N, widest;
  };
  constexpr std::string_view unfit(const problem& p) const { return size > p.widest ? "it is too wide" : ""; }
  constexpr cost cost_of(const problem& p) const { return {rate * ((p.N + size - 1) / size), (p.N + size - 1) / size}; }
  std::string name(const cost& c) const { return std::to_string(size) + (c.tiles == 0 ? "" : ", " + std::to_string(c.tiles) + " tiles"); }
};
constexpr std::array<tile, 3> tiles{{{128, 3}, {64, 2}, {32, 1}}};

TEST(choose_kernel, takes_the_fastest_variant_that_fits) {
  constexpr auto wide = choose_kernel(tiles, tile::problem{1024, 128}), narrow = choose_kernel(tiles, tile::problem{1024, 64});
  static_assert(wide.variant == &tiles[0] && wide.cost.seconds == 24 && wide.cost.tiles == 8);
  static_assert(narrow.variant == &tiles[1] && narrow.cost.seconds == 32);
  EXPECT_EQ(choose_kernel(tiles, tile::problem{32, 128}).variant, &tiles[2]);
}
TEST(choose_kernel, takes_the_first_of_equally_fast_ones) {
  constexpr std::array<tile, 2> alike{{{64, 2}, {32, 1}}};
  static_assert(choose_kernel(alike, tile::problem{128, 128}).variant == &alike[0]);
}
TEST(choose_kernel, takes_none_where_none_fits) {
  isotope::kernel_choices said;
  EXPECT_EQ(choose_kernel(tiles, tile::problem{1024, 16}, &said).variant, nullptr);
  ASSERT_EQ(said.all.size(), 3u);
  for (const auto& v : said.all) EXPECT_FALSE(v.chosen);
}
TEST(choose_kernel, says_what_it_considered) {
  isotope::kernel_choices said;
  choose_kernel(tiles, tile::problem{96, 64}, &said);
  const std::vector<considered_variant> wanted = {
      {"128", 0, "it is too wide"}, {"64, 2 tiles", 4, {}, false}, {"32, 3 tiles", 3, {}, true}};
  EXPECT_EQ(said.all, wanted);
}
TEST(choose_kernel, takes_the_one_that_is_asked_for_where_it_fits) {
  for (const auto& [wanted, size] : {std::pair<const char*, int>{"64", 64}, {"128", 32}, {"7", 32}}) {
    isotope::kernel_choices asked{.wanted = wanted};
    EXPECT_EQ(choose_kernel(tiles, tile::problem{96, 64}, &asked).variant->size, size) << wanted;
    for (const auto& v : asked.all) EXPECT_EQ(v.chosen, v.name.starts_with(std::to_string(size))) << v.name;
  }
}
TEST(choose_kernel, takes_the_remembered_one_where_it_fits_unless_another_is_asked_for) {
  for (const auto& [remembered, size] :
       {std::pair<const char*, int>{"64, 2 tiles", 64}, {"64", 32}, {"64, 3 tiles", 32}, {"128", 32}, {"", 32}}) {
    isotope::kernel_choices known{.remembered = remembered};
    EXPECT_EQ(choose_kernel(tiles, tile::problem{96, 64}, &known).variant->size, size) << remembered;
  }
  isotope::kernel_choices both{.wanted = "32", .remembered = "64, 2 tiles"};
  EXPECT_EQ(choose_kernel(tiles, tile::problem{96, 64}, &both).variant->size, 32);
}
TEST(choose_kernel, reports_steps_that_were_given_the_same_variants_once) {
  std::vector<isotope::launch_row> rows(4);
  for (int k = 0; k < 4; ++k) rows[std::size_t(k)].step = k;
  for (const auto& [k, p] : {std::pair<int, tile::problem>{0, {96, 64}}, {2, {96, 64}}, {3, {32, 32}}}) {
    isotope::kernel_choices said;
    choose_kernel(tiles, p, &said);
    rows[std::size_t(k)].considered = said.all;
  }
  EXPECT_EQ(isotope::variants_to_text(rows),
            "# variant\t0,2\t128\t-\tit is too wide\n"
            "# variant\t0,2\t64, 2 tiles\t4000000.000000\t-\n"
            "# variant\t0,2\t32, 3 tiles\t3000000.000000\tchosen\n"
            "# variant\t3\t128\t-\tit is too wide\n"
            "# variant\t3\t64\t-\tit is too wide\n"
            "# variant\t3\t32, 1 tiles\t1000000.000000\tchosen\n");
}

}  // namespace choose_kernel_test
