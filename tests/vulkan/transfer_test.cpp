/// Copies between host and device outside of steps.
#include "device.hpp"

#include <isotope/backend/vulkan/transfer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace isotope::vulkan {
namespace transfer_test {

TEST(vulkan_transfer, pieces_of_any_size_come_through_the_staging_memory_whole) {
  auto& d = vulkan_test::test_device();
  auto pool = command_pool::create(d.context);
  ASSERT_TRUE(pool.ok()) << pool.error().line();
  auto moving = transfer::create(*pool);
  ASSERT_TRUE(moving.ok()) << moving.error().line();
  constexpr std::int64_t half = transfer::half_bytes, bytes = 5 * half;
  auto store = memory::allocate(d.context, bytes, memory_use::device, "pieces");
  ASSERT_TRUE(store.ok()) << store.error().line();
  std::vector<std::byte> sent(std::size_t(bytes), std::byte{});
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = std::byte(std::uint8_t(i * 2654435761U >> 13));
  ASSERT_TRUE(moving->upload(*store, 0, sent).ok());
  const std::vector<std::int64_t> sizes{4, half - 4, half, 12, 2 * half + 8, 4, 0, half - 28};  // ends at a half, fills one, spans three
  std::vector<std::byte> got(sent.size());
  std::vector<memory_piece> pieces;
  std::int64_t at = 0;
  for (const auto n : sizes) pieces.push_back({at, std::span(got).subspan(std::size_t(at), std::size_t(n))}), at += n;
  std::reverse(pieces.begin(), pieces.end());
  ASSERT_TRUE(moving->download(*store, pieces).ok());
  got.resize(std::size_t(at));
  sent.resize(got.size());
  EXPECT_TRUE(got == sent);
}

}  // namespace transfer_test
}  // namespace isotope::vulkan
