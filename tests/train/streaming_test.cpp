// labels: alone
// Saving and loading need memory for the largest tensor, regardless of how many tensors there are.
#include <allocation_counter.hpp>
#include <io/scratch_folder.hpp>
#include <isotope/train/checkpointing.hpp>
#include <train/generated_session.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace train = isotope::train;
namespace io = isotope::io;

namespace streaming_test {

constexpr std::int64_t tensor_bytes = 4 << 20, mebibyte = 1 << 20;

/// 64 tensors of 4 MiB in all kinds: 24 parameters, as many first moments, 16 second ones.
template <class S> S large_session() {
  std::vector<fake::slot> slots;
  for (int i = 0; i < 24; ++i) slots.push_back({"h." + std::to_string(i) + ".weight", {1024, 1024}});
  return S(std::move(slots));
}

/// The most bytes from operator new that f holds at once.
template <class F> std::int64_t most_held(const F& f) {
  const std::int64_t before = held_bytes;
  most_held_bytes = before;
  f();
  return most_held_bytes - before;
}

train::run_identity identity() { return {R"({"width":3})", R"({"steps":20})", 7, 2, io::vocabulary::of_bytes()}; }

train::run_state at_step(std::int64_t step) {
  train::run_state r;
  r.step = step;
  return r;
}

template <class S> struct memory : testing::Test {};
using sessions = testing::Types<fake::generated_session, fake::grouped_session>;
TYPED_TEST_SUITE(memory, sessions);

TYPED_TEST(memory, saving_and_loading_hold_one_tensor_of_many) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has its own operator new";
#else
  const isotope::scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("c"));
  ASSERT_TRUE(folder.ok());
  train::folder_store store(*folder, identity());
  auto s = large_session<TypeParam>();
  const auto saving = most_held([&] {
    for (const std::int64_t step : {1, 2}) {
      const auto saved = store.save(s, at_step(step), false);
      ASSERT_TRUE(saved) << saved.error().line();
    }
  });
  EXPECT_GE(saving, tensor_bytes) << "the session's numbers must have gone through counted memory";
  EXPECT_LE(saving, tensor_bytes + mebibyte);

  const auto loading = most_held([&] {
    const auto latest = io::checkpoint_folder(scratch.at("c")).latest();
    ASSERT_TRUE(latest) << latest.error().line();
    const auto restored = train::restore(s, latest->contents, identity(), latest->path);
    ASSERT_TRUE(restored) << restored.error().line();
  });
  EXPECT_EQ(s.writes, 64u);
  EXPECT_EQ(s.wrong, 0u);
  EXPECT_GE(loading, tensor_bytes);
  EXPECT_LE(loading, tensor_bytes + tensor_bytes / 10);
#endif
}

}  // namespace streaming_test
