// A program knows which backends it was built with, and lists them if another one is asked for.
#include <isotope/core/backend_list.hpp>
#include <isotope/core/device.hpp>

#include <gtest/gtest.h>

namespace backend_list_test {
using namespace isotope;

template <int Rank> struct ranked {
  static constexpr std::string_view name = Rank == 0 ? "low" : "high";
  static constexpr int preference = Rank;
  static constexpr std::int64_t chunk_bytes = 0, tensor_bytes = 0, row_multiple = 1;
  static constexpr std::string_view native_reason = "no native kernel";
  static std::vector<code_variant> variants() { return {}; }
  using options = device_options;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
using low = ranked<0>;
using high = ranked<2>;

TEST(backend_list, finds_what_it_was_built_with) {
  const auto found = backend_list<low, high>::find("high");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "high");
  EXPECT_EQ(found->preference, 2);
}
TEST(backend_list, a_backend_that_was_not_compiled_in_is_an_error_that_lists_those_that_were) {
  const auto found = backend_list<low, high>::find("metal");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::not_compiled_in);
  EXPECT_EQ(
      found.error().line(),
      "this program was built without the backend 'metal' (fix: configure with -DBACKEND=metal, or choose one that it has: low, high)");
}
}  // namespace backend_list_test
