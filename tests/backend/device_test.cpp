/// Devices, their buffers and the sessions that use them.
#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>

namespace iso = isotope;
using target = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>;

namespace device_test {

static_assert(std::is_same_v<iso::backend::cpu::default_precision, iso::precision::f32>, "what a program runs in when nobody chose");

struct doubled {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const { return s.input("x", {4}) * 2.0; }
};

TEST(Devices, TheCpuIsListedAndOpens) {
  const auto all = iso::devices<iso::backend::cpu>();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "cpu");
  EXPECT_GE(all[0].units, 1);
  for (const char* name : {"", "cpu", "0"}) EXPECT_TRUE(iso::device<target>::open({.threads = 1, .name = name}).ok()) << name;
}

TEST(Devices, AnUnknownNameIsAnErrorThatListsWhatThereIs) {
  const auto d = iso::device<target>::open({.threads = 1, .name = "llvmpipe"});
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, iso::errc::unknown_device);
  EXPECT_NE(d.error().line().find("llvmpipe"), std::string::npos);
  EXPECT_NE(d.error().line().find("0 cpu"), std::string::npos);
}

TEST(Devices, AnAbsurdNumberOfThreadsIsRefusedWithTheRange) {
  const auto d = iso::device<target>::open({.threads = -3, .name = {}});
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, iso::errc::invalid_argument);
  EXPECT_NE(d.error().line().find("-3"), std::string::npos);
}

TEST(Buffers, ABufferFillsAnInputOfItsOwnDeviceOnly) {
  auto here = iso::device<target>::open({.threads = 1, .name = {}}), there = iso::device<target>::open({.threads = 1, .name = {}});
  auto session = here->load(std::move(*iso::plan_inference<target>(doubled{})));
  auto mine = here->allocate<float>(4), other = there->allocate<float>(4), shorter = here->allocate<float>(3);
  ASSERT_TRUE(session.ok() && mine.ok() && other.ok() && shorter.ok());
  for (int i = 0; i < 4; ++i) mine->span()[std::size_t(i)] = float(i) + 0.5f;
  ASSERT_TRUE(session->upload("x", *mine).ok());
  static_cast<void>(session->run({}));
  const auto y = session->output<float>("output");
  for (int i = 0; i < 4; ++i) EXPECT_EQ((*y)[std::size_t(i)], 2 * (float(i) + 0.5f));
  EXPECT_EQ(session->upload("x", *other).error().code, iso::errc::wrong_device);
  EXPECT_EQ(session->upload("x", *shorter).error().code, iso::errc::invalid_argument);
  EXPECT_EQ(session->upload("y", *mine).error().code, iso::errc::not_found);
}

TEST(Buffers, AnInputOfAnotherElementSizeIsRefused) {
  auto device = iso::device<target>::open({.threads = 1, .name = {}});
  auto session = device->load(std::move(*iso::plan_inference<target>(doubled{})));
  const auto x = session->input<double>("x");
  ASSERT_FALSE(x.ok());
  EXPECT_EQ(x.error().code, iso::errc::invalid_argument);
}

TEST(Arena, AnImpossibleSizeIsOutOfMemoryWithTheBytes) {
  const auto a = iso::cpu::arena::allocate(std::int64_t(1) << 60);
  ASSERT_FALSE(a.ok());
  EXPECT_EQ(a.error().code, iso::errc::out_of_memory);
  EXPECT_NE(a.error().line().find(std::to_string(std::int64_t(1) << 60)), std::string::npos);
}

}  // namespace device_test
