#include <isotope/train/plot.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace train = isotope::train;

namespace plot_test {

/// The first structural error of an XML text without comments, CDATA or declarations; empty when well-formed.
std::string xml_error(const std::string& s) {
  std::vector<std::string> open;
  bool root_seen = false;
  for (std::size_t i = 0; i < s.size();) {
    if (s[i] == '&' && s.compare(i, 5, "&amp;") != 0 && s.compare(i, 4, "&lt;") != 0 && s.compare(i, 4, "&gt;") != 0) return "bare &";
    if (s[i] != '<') {
      if (open.empty() && s[i] != '\n') return "text outside the root";
      ++i;
      continue;
    }
    const std::size_t end = s.find('>', i);
    if (end == std::string::npos) return "unclosed <";
    const std::string tag = s.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string::npos) return "< within a tag";
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "odd quotes in <" + tag + ">";
    const std::string name = tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
      open.pop_back();
    } else if (tag.back() != '/') {
      if (open.empty() && root_seen) return "two roots";
      root_seen = true;
      open.push_back(name);
    }
    i = end + 1;
  }
  return open.empty() && root_seen ? "" : "unclosed element";
}

int count(const std::string& s, const std::string& part) {
  int n = 0;
  for (std::size_t at = s.find(part); at != std::string::npos; at = s.find(part, at + 1)) ++n;
  return n;
}

train::loss_curves falling(int steps) {
  train::loss_curves c{"a run", {}, {}};
  for (int i = 1; i <= steps; ++i) c.train.push_back({double(i), 1 + 3.0 / i});
  for (int i = 0; i <= 4; ++i) c.validation.push_back({steps * i / 4.0, 4 - 0.5 * i});
  return c;
}

TEST(plot, the_checker_of_these_tests_catches_broken_documents) {
  EXPECT_EQ(xml_error("<a><b/></a>"), "");
  for (const char* bad : {"<a>", "<a></b>", "<a/>x", "<a x=\"1/></a>", "<a>&</a>", "<a></a><b></b>", "<a"})
    EXPECT_NE(xml_error(bad), "") << bad;
}

TEST(plot, the_document_is_well_formed_with_axes_curves_and_a_legend) {
  const std::string svg = train::loss_plot(falling(200));
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_EQ(count(svg, "<path class=\"train\""), 1);
  EXPECT_EQ(count(svg, "<path class=\"validation\""), 1);
  EXPECT_EQ(count(svg, "<circle"), 5);
  EXPECT_EQ(count(svg, ">training</text>"), 1);
  EXPECT_EQ(count(svg, ">validation</text>"), 1);
  EXPECT_EQ(count(svg, ">loss</text>"), 1);
  EXPECT_EQ(count(svg, ">step</text>"), 1);
  EXPECT_GE(count(svg, "class=\"grid\""), 3);
  EXPECT_EQ(count(svg, "prefers-color-scheme: dark"), 1);
}

TEST(plot, a_title_with_reserved_characters_stays_well_formed) {
  train::loss_curves c = falling(3);
  c.title = "a < b & c > d \"quoted\"";
  const std::string svg = train::loss_plot(c);
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_EQ(count(svg, "a &lt; b &amp; c &gt; d"), 2);
}

TEST(plot, empty_single_flat_and_non_finite_curves_are_drawn_without_nonsense) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const train::loss_curves& c :
       {train::loss_curves{"none", {}, {}}, train::loss_curves{"one", {{1, 2}}, {}}, train::loss_curves{"flat", {{1, 2}, {2, 2}}, {{1, 2}}},
        train::loss_curves{"broken", {{1, nan}, {2, inf}}, {{2, -inf}}}, train::loss_curves{"half", {{1, 3}, {2, nan}, {3, 2}}, {}},
        train::loss_curves{"tiny", {{1, 1e-12}, {2, 2e-12}}, {}}, train::loss_curves{"near", {{1, 1e30}, {2, 1.0000000000000002e30}}, {}},
        train::loss_curves{"large", {{1, 1e30}, {2e9, 2e31}}, {}}}) {
    const std::string svg = train::loss_plot(c);
    EXPECT_EQ(xml_error(svg), "") << c.title;
    EXPECT_EQ(count(svg, "nan"), 0) << c.title;
    EXPECT_EQ(count(svg, "inf,"), 0) << c.title;
    EXPECT_LE(svg.size(), 20000u) << c.title;
  }
  EXPECT_EQ(count(train::loss_plot({"broken", {{1, nan}}, {}}), "no finite loss"), 1);
}

TEST(plot, a_long_run_is_thinned_to_means) {
  EXPECT_LE(train::loss_plot(falling(1000000)).size(), 40000u);
  const auto t = train::detail::thinned({{1, 1}, {2, 3}, {3, 5}, {4, 7}, {5, 9}}, 3);
  ASSERT_EQ(t.size(), 3u);
  EXPECT_EQ(t[0].step, 1.5);
  EXPECT_EQ(t[0].loss, 2);
  EXPECT_EQ(t[2].step, 5);
  EXPECT_EQ(t[2].loss, 9);
}

TEST(plot, ticks_are_round_numbers_inside_the_range) {
  const auto t = train::detail::ticks_in(0, 2000, 8);
  EXPECT_EQ(t.spacing, 500);
  EXPECT_EQ(t.at.size(), 5u);
  EXPECT_EQ(t.digits, 0);
  const auto u = train::detail::ticks_in(1.43, 4.31, 6);
  EXPECT_EQ(u.spacing, 0.5);
  EXPECT_EQ(u.digits, 1);
  EXPECT_EQ(u.at.front(), 1.5);
  EXPECT_EQ(u.at.back(), 4.0);
}

}  // namespace plot_test
