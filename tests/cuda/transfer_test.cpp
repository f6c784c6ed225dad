/// Copies between host and device outside of steps.
#include "device.hpp"

#include <isotope/backend/cuda/transfer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace isotope::cuda {
namespace transfer_test {

TEST(cuda_transfer, pieces_of_any_size_come_through_the_staging_memory_whole) {
  auto& d = cuda_test::test_device();
  constexpr std::int64_t half = transfer::half_bytes, bytes = 5 * half;
  auto store = memory::allocate(d.context, bytes, memory_use::device, "pieces");
  ASSERT_TRUE(store.ok()) << store.error().line();
  std::vector<std::byte> sent(std::size_t(bytes), std::byte{});
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = std::byte(std::uint8_t(i * 2654435761U >> 13));
  ASSERT_TRUE(d.moving.upload(*store, 0, sent).ok());
  // Pieces that end at the end of a staging buffer, fill one, and span three.
  const std::vector<std::int64_t> sizes{4, half - 4, half, 12, 2 * half + 8, 4, 0, half - 28};
  std::vector<std::byte> got(sent.size());
  std::vector<memory_piece> pieces;
  std::int64_t at = 0;
  for (const auto n : sizes) pieces.push_back({at, std::span(got).subspan(std::size_t(at), std::size_t(n))}), at += n;
  std::reverse(pieces.begin(), pieces.end());
  ASSERT_TRUE(d.moving.download(*store, pieces).ok());
  got.resize(std::size_t(at));
  sent.resize(got.size());
  EXPECT_TRUE(got == sent);
}
TEST(cuda_transfer, cleared_bytes_are_zero_and_those_beside_them_stay) {
  auto& d = cuda_test::test_device();
  auto store = memory::allocate(d.context, 4096, memory_use::device, "cleared");
  ASSERT_TRUE(store.ok()) << store.error().line();
  const std::vector<std::byte> sent(4096, std::byte{7});
  ASSERT_TRUE(d.moving.upload(*store, 0, sent).ok());
  ASSERT_TRUE(d.moving.clear(*store, 256, 1024).ok());
  std::vector<std::byte> got(4096);
  ASSERT_TRUE(d.moving.download(*store, 0, got).ok());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i < 256 || i >= 1280 ? std::byte{7} : std::byte{0}) << i;
}

}  // namespace transfer_test
}  // namespace isotope::cuda
