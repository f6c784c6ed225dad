// labels: nightly
// Tensors of more than 2^31 elements in little memory: their pages map the same 64 MiB repeatedly, except for the last piece.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <isotope/backend/cpu/thread_pool.hpp>
#include <isotope/kernels/cpu/all.hpp>
#include <isotope/op/all.hpp>
#include <isotope/op/clip_value.hpp>
#include <isotope/op/global_norm.hpp>
#include <vector>

using namespace isotope;

namespace virtual_elements_nightly_test {

constexpr std::size_t piece = std::size_t(64) << 20;
constexpr std::int64_t per_piece = std::int64_t(piece / sizeof(float));
constexpr std::int64_t count = (std::int64_t(1) << 31) + 5 * per_piece + 1234;

/// `count` floats in pieces of `per_piece`, which all share the same pages except for the last piece.
struct repeated_pages {
  std::size_t bytes = (std::size_t(count) * sizeof(float) + piece - 1) / piece * piece;
  float* at = nullptr;
  /// `at` is null if the system does not provide such a mapping.
  repeated_pages() {
    const int file = ::memfd_create("elements", 0);
    void* all = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool there = file >= 0 && ::ftruncate(file, off_t(piece)) == 0 && all != MAP_FAILED;
    for (std::size_t i = 0; there && i + piece < bytes; i += piece)
      there = ::mmap(static_cast<char*>(all) + i, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    there = there && ::mprotect(static_cast<char*>(all) + bytes - piece, piece, PROT_READ | PROT_WRITE) == 0;
    if (file >= 0) ::close(file);
    if (there) at = static_cast<float*>(all);
  }
  repeated_pages(const repeated_pages&) = delete;
  repeated_pages& operator=(const repeated_pages&) = delete;
  ~repeated_pages() {
    if (at != nullptr) ::munmap(at, bytes);
  }
  static constexpr std::int64_t last = count / per_piece * per_piece;  // the first element of the last piece
  template <class Value> void fill(Value value) const {
    for (std::int64_t i = 0; i < per_piece; ++i) at[i] = value(i);
    for (std::int64_t i = last; i < count; ++i) at[i] = value(i);
  }
  cpu::view view() const {
    const shape dims{count};
    return {reinterpret_cast<std::byte*>(at), dims, dense_strides(dims), dtype::f32};
  }
};

template <class Set> struct virtual_elements_nightly : testing::Test {};
using sets = testing::Types<kernels::reference, kernels::portable>;
TYPED_TEST_SUITE(virtual_elements_nightly, sets);

TYPED_TEST(virtual_elements_nightly, are_counted_by_the_norm) {
  const repeated_pages g;
  ASSERT_NE(g.at, nullptr);
  g.fill([](std::int64_t) { return 1.0f; });
  std::vector<cpu::view> in = {g.view()};
  float norm = 0;
  std::vector<cpu::view> out = {{reinterpret_cast<std::byte*>(&norm), shape{}, {}, dtype::f32}};
  using kernel = cpu::kernel<op::global_norm, precision::f32, TypeParam>;
  const attributes a;
  const std::vector<shape> in_dims = {in[0].dims}, out_dims = {shape{}};
  std::vector<std::byte> scratch;
  if constexpr (requires { kernel::scratch(step_shapes{}); })
    scratch.resize(std::size_t(kernel::scratch(step_shapes{in_dims, out_dims, &a})));
  cpu::thread_pool pool(2);
  const step_scalars scalars;
  kernel::run(cpu::launch{in, out, &a, {}, scratch.data(), &pool, &scalars, 0, 0});
  EXPECT_EQ(norm, float(std::sqrt(double(count))));
}
TYPED_TEST(virtual_elements_nightly, are_all_clipped) {
  const repeated_pages g;
  ASSERT_NE(g.at, nullptr);
  const auto value = [](std::int64_t i) { return float(i % 5) - 2; };
  g.fill(value);
  std::vector<cpu::view> in = {g.view()}, out = in;
  using kernel = cpu::kernel<op::clip_value, precision::f32, TypeParam>;
  const attributes a;
  cpu::thread_pool pool(2);
  step_scalars scalars;
  scalars.clip_value = 1;
  kernel::run(cpu::launch{in, out, &a, {}, nullptr, &pool, &scalars, 0, 0});
  std::int64_t wrong = 0;
  const auto is_clipped = [&](std::int64_t i) { return g.at[i] == std::fmin(std::fmax(value(i), -1.0f), 1.0f); };
  for (std::int64_t i = 0; i < per_piece; ++i) wrong += !is_clipped(i);
  for (std::int64_t i = g.last; i < count; ++i) wrong += !is_clipped(i);
  EXPECT_EQ(wrong, 0);
}

}  // namespace virtual_elements_nightly_test
