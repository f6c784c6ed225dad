#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include <isotope/calibrate/calibration_file.hpp>
#include <isotope/io/file.hpp>

#include "io/scratch_folder.hpp"

namespace {
namespace iso = isotope;
using isotope::scratch_folder;

iso::calibration sample(const std::string& format) {
  iso::calibration c{.device = "d", .format = format};
  for (std::size_t q = 0; q < iso::quantities; ++q) c.measured(iso::quantity(q), 2.5 + double(q));
  return c;
}

TEST(calibration_file, keeps_the_figures_of_every_format) {
  const scratch_folder folder;
  const std::string path = folder.at("calib.json");
  ASSERT_TRUE(iso::write_calibration(path, sample("f32")).ok());
  ASSERT_TRUE(iso::write_calibration(path, sample("bf16")).ok());
  const auto got = iso::read_calibrations(path, "d");
  EXPECT_EQ(got.ignored, "");
  ASSERT_EQ(got.all.size(), 2u);
  ASSERT_NE(got.find("f32"), nullptr);
  EXPECT_EQ(got.find("f32")->figures, sample("f32").figures);
  EXPECT_EQ(got.find("f32")->weakest(), iso::provenance::measured);
  EXPECT_EQ(iso::calibration{}.weakest(), iso::provenance::none);
}

TEST(calibration_file, has_a_path_of_its_own_for_each_device_of_one_name) {
  iso::device_info a{.name = "GPU X1 (80 GB)", .backend = "b"};
  EXPECT_EQ(iso::calibration_path("f", a), "f/isotope/b-calib-GPU-X1--80-GB-.json");
  iso::device_info b = a;
  a.facts = {{"uuid", "0123456789abcdef"}}, b.facts = {{"uuid", "1123456789abcdef"}};
  EXPECT_EQ(iso::calibration_path("f", a), "f/isotope/b-calib-GPU-X1--80-GB--01234567.json");
  EXPECT_NE(iso::calibration_path("f", a), iso::calibration_path("f", b));
  EXPECT_NE(iso::calibration_key(a, "p", "1"), iso::calibration_key(b, "p", "1"));
  EXPECT_NE(iso::calibration_key(a, "p", "1"), iso::calibration_key(a, "p", "2"));
  EXPECT_NE(iso::calibration_key(a, "p", "1"), iso::calibration_key(a, "q", "1"));
}

TEST(calibration_file, of_another_device_is_ignored_in_one_line) {
  const auto got = iso::parse_calibrations(iso::text_of({sample("f32")}), "p", "another");
  EXPECT_TRUE(got.all.empty());
  EXPECT_EQ(got.ignored, "p is ignored and will be replaced: it was measured on another device, driver or library");
  EXPECT_EQ(got.why, "it was measured on another device, driver or library");
}

TEST(calibration_file, that_was_cut_anywhere_is_ignored) {
  std::string whole = iso::text_of({sample("f32")});
  whole.pop_back();  // the end of the line, without which it is whole
  ASSERT_EQ(iso::parse_calibrations(whole, "p", "d").all.size(), 1u);
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    const auto got = iso::parse_calibrations(std::string_view(whole).substr(0, n), "p", "d");
    EXPECT_TRUE(got.all.empty() && !got.ignored.empty() && got.ignored.find('\n') == std::string::npos) << n;
  }
}

TEST(calibration_file, with_a_figure_out_of_range_is_ignored) {
  const std::string whole = iso::text_of({sample("f32")});
  const std::string number = "2.5";
  ASSERT_NE(whole.find(number), std::string::npos);
  for (const char* bad : {"0", "-1", "1e300", "1e999", "\"x\"", "null", "[]"}) {
    std::string text = whole;
    text.replace(text.find(number), number.size(), bad);
    const auto got = iso::parse_calibrations(text, "p", "d");
    EXPECT_TRUE(got.all.empty() && !got.ignored.empty()) << bad;
  }
}
}  // namespace
