#include <isotope/comm/cuda/nccl_library.hpp>
#include <isotope/comm/nccl_settings.hpp>

#include <gtest/gtest.h>

namespace nccl_choices_test {

using isotope::errc;
using isotope::nccl_settings;
namespace nccl = isotope::nccl;

TEST(nccl_settings, pinned_choices_are_accepted) {
  const auto s = nccl_settings::from({{"NCCL_NVLS_ENABLE", "0"}, {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL128"}, {"HOME", "x"}});
  ASSERT_TRUE(s.ok()) << s.error().line();
  EXPECT_EQ(s->text(), "Ring, LL128, without NVLink multicast");
}
TEST(nccl_settings, an_empty_environment_is_refused_in_one_line_that_says_what_to_set) {
  const auto s = nccl_settings::from({});
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, errc::invalid_argument);
  EXPECT_EQ(s.error().line(),
            "nccl: NCCL_NVLS_ENABLE is not set, NCCL_ALGO is not set, NCCL_PROTO is not set: runs would not repeat bit for bit, or NVLink "
            "multicast would be used "
            "(fix: set NCCL_NVLS_ENABLE=0, and NCCL_ALGO and NCCL_PROTO to one choice each, such as Ring and Simple, before the program "
            "starts a thread)");
}
TEST(nccl_settings, what_leaves_a_choice_is_refused_by_name) {
  const auto says = [](const char* nvls, const char* algorithm, const char* protocol, const std::string& text) {
    const auto s = nccl_settings::from({{"NCCL_NVLS_ENABLE", nvls}, {"NCCL_ALGO", algorithm}, {"NCCL_PROTO", protocol}});
    ASSERT_FALSE(s.ok()) << text;
    EXPECT_TRUE(s.error().what.starts_with(text)) << s.error().what;
  };
  says("1", "Ring", "Simple", "NCCL_NVLS_ENABLE is '1':");
  says("0", "Ring,Tree", "Simple", "NCCL_ALGO is 'Ring,Tree':");
  says("0", "^NVLS", "Simple", "NCCL_ALGO is '^NVLS':");
  says("0", "allreduce:tree", "Simple", "NCCL_ALGO is 'allreduce:tree':");
  says("0", "Ring", "", "NCCL_PROTO is not set:");
  says("2", "", "^LL", "NCCL_NVLS_ENABLE is '2', NCCL_ALGO is not set, NCCL_PROTO is '^LL':");
}

TEST(nccl_id, an_id_passes_as_256_hexadecimal_digits) {
  nccl::unique_id id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = char(i * 37 + 128);
  const std::string text = nccl::to_hex(id);
  EXPECT_EQ(text.size(), 256u);
  EXPECT_EQ(text.substr(0, 4), "80a5");
  const auto back = nccl::from_hex(text);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, id);
}
TEST(nccl_id, other_texts_are_refused) {
  const std::string good(256, 'F');
  EXPECT_TRUE(nccl::from_hex(good).ok());
  for (const std::string& bad : {std::string(), good.substr(1), good + "0", "g" + good.substr(1), good.substr(1) + " "})
    EXPECT_EQ(nccl::from_hex(bad).error().code, errc::bad_format) << bad.size();
}

TEST(nccl_library, a_library_that_is_not_there_is_named) {
  const auto l = nccl::library::open("libnccl-of-nobody.so.2");
  ASSERT_FALSE(l.ok());
  EXPECT_EQ(l.error().code, errc::missing_feature);
  EXPECT_EQ(l.error().what, "NCCL is not installed: the loader finds no libnccl-of-nobody.so.2");
}
TEST(nccl_library, another_library_is_refused) {
  const auto l = nccl::library::open("libc.so.6");
  ASSERT_FALSE(l.ok());
  EXPECT_EQ(l.error().what, "libc.so.6 lacks ncclGetVersion");
}
TEST(nccl_library, versions_before_2_18_are_refused) {
  EXPECT_TRUE(nccl::library::check_version(21800).ok());
  EXPECT_TRUE(nccl::library::check_version(22809).ok());
  EXPECT_EQ(nccl::library::check_version(21705).error().what, "NCCL 2.17.5 is too old: 2.18.0 is needed");
}

}  // namespace nccl_choices_test
