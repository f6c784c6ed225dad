#include <gtest/gtest.h>

#include <isotope/core/philox.hpp>

namespace isotope {
namespace philox_test {

using words = std::array<std::uint32_t, 4>;

// Known answers for philox4x32 with 10 rounds, from kat_vectors of the Random123 distribution.
static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(philox, run_time_equals_the_published_vectors) {
  volatile std::uint32_t zero = 0;
  EXPECT_EQ(philox4x32({zero, zero, zero, zero}, {zero, zero}), (words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(philox, every_part_of_seed_element_step_and_stream_reaches_the_counter_in_its_place) {
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x13198a2e, 0x03707344),
            (words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(philox, the_unit_interval_is_half_open) {
  EXPECT_EQ(unit_interval(0), 0.0f);
  EXPECT_EQ(unit_interval(0xffffffffu), 1.0f - 0x1p-24f);
  EXPECT_EQ(unit_interval(0x80000000u), 0.5f);
}

}  // namespace philox_test
}  // namespace isotope
