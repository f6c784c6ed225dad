// A program built with several backends takes the one of the highest rank, and knows which ones it has.
#include <isotope/core/backend_list.hpp>
#include <isotope/core/preference.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace preference_test {
using namespace isotope;

template <int Rank> struct ranked {
  static constexpr std::string_view name = Rank == 0 ? "low" : Rank == 1 ? "middle" : "high";
  static constexpr int preference = Rank;
  static constexpr std::int64_t chunk_bytes = 0;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
using low = ranked<0>;
using middle = ranked<1>;
using high = ranked<2>;

// The seven subsets of three backends.
static_assert(std::is_same_v<preferred<low>, low>);
static_assert(std::is_same_v<preferred<middle>, middle>);
static_assert(std::is_same_v<preferred<high>, high>);
static_assert(std::is_same_v<preferred<low, middle>, middle>);
static_assert(std::is_same_v<preferred<low, high>, high>);
static_assert(std::is_same_v<preferred<middle, high>, high>);
static_assert(std::is_same_v<preferred<low, middle, high>, high>);
// In any order, and of equals the first.
static_assert(std::is_same_v<preferred<high, low, middle>, high>);
static_assert(std::is_same_v<preferred<middle, high, low>, high>);
struct other : low {};
static_assert(std::is_same_v<preferred<low, other>, low> && std::is_same_v<preferred<other, low>, other>);

TEST(backend_list, finds_what_it_was_built_with) {
  const auto found = backend_list<low, high>::find("high");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "high");
  EXPECT_EQ(found->preference, 2);
}
TEST(backend_list, what_was_not_compiled_in_is_a_typed_error_with_the_ones_there_are) {
  const auto found = backend_list<low, high>::find("cuda");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::not_compiled_in);
  EXPECT_EQ(found.error().line(),
            "this program was built without the backend 'cuda' (fix: configure with -DBACKEND=cuda, or choose one that it has: low, high)");
}
}  // namespace preference_test
