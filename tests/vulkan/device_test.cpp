/// Opening devices: choice, refusals, faults. What runs on them is in session_test.
#include "device.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/backend/vulkan.hpp>
#include <isotope/core/backend_list.hpp>

namespace isotope::vulkan {
namespace device_test {

using target_f32 = target<backend::vulkan, precision::f32>;
static_assert(backend::vulkan::preference > backend::cpu::preference);
// What a program runs in when nobody chose: f32 on both; bf16 is a choice.
template <class B, class P> constexpr bool defaults_to = std::is_same_v<typename B::default_precision, P>;
static_assert(defaults_to<backend::cpu, precision::f32> && !defaults_to<backend::cpu, precision::bf16>);
static_assert(defaults_to<backend::vulkan, precision::f32> && !defaults_to<backend::vulkan, precision::bf16>);

TEST(vulkan_device, the_best_is_listed_first_and_opens_by_index_name_part_and_kind) {
  vulkan_test::test_device();
  const auto all = devices<backend::vulkan>();
  ASSERT_FALSE(all.empty());
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(int(all[i - 1].kind), int(all[i].kind));
  constexpr const char* kinds[] = {"cpu", "integrated", "discrete"};
  std::string upper = all[0].name.substr(0, 5);
  for (char& c : upper) c = char(std::toupper(c));
  for (const std::string& name : {std::string(), std::string("0"), upper, std::string(kinds[int(all[0].kind)])}) {
    const auto d = device<target_f32>::open({.name = name});
    ASSERT_TRUE(d.ok()) << name << ": " << d.error().line();
    EXPECT_EQ(d->info().name, all[0].name);
    EXPECT_EQ(d->info().backend, "vulkan");
  }
}
physical_device fake(std::string name, device_kind kind, std::string missing = {}) {
  physical_device p;
  p.name = std::move(name);
  p.kind = kind;
  p.missing = std::move(missing);
  return p;
}
TEST(vulkan_device, its_report_tells_the_modes_of_f32_that_kernels_could_ask_for) {
  const auto told = [](const float_modes& m) {
    physical_device p = fake("card", device_kind::discrete);
    p.modes = m;
    for (const auto& f : describe(p, 0).facts)
      if (f.name == "f32 modes") return f.value;
    return std::string("nothing");
  };
  EXPECT_EQ(told({}), "none can be set; kernels ask for none");
  EXPECT_EQ(told({.keeps_subnormals = true, .rounds_to_nearest_even = true}),
            "can keep subnormal numbers, round to nearest even; kernels ask for none");
  EXPECT_EQ(
      told({true, true, true, true, true}),
      "can keep subnormal numbers, flush them to zero, keep signed zeros, infinities and NaN, round to nearest even, round toward zero; "
      "kernels ask for none");
  vulkan_test::test_device();
  const auto all = devices<backend::vulkan>();
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(std::any_of(all[0].facts.begin(), all[0].facts.end(), [](const auto& f) { return f.name == "f32 modes"; }));
}
TEST(vulkan_device, of_several_kinds_the_discrete_come_first_and_equals_keep_the_order_of_the_driver) {
  std::vector<physical_device> all;
  for (const auto& [name, kind] :
       {std::pair("pipe", device_kind::cpu), std::pair("laptop", device_kind::integrated), std::pair("Card B", device_kind::discrete),
        std::pair("other pipe", device_kind::cpu), std::pair("card A", device_kind::discrete)})
    add_by_kind(all, fake(name, kind));
  std::vector<std::string> names;
  for (const auto& p : all) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"Card B", "card A", "laptop", "pipe", "other pipe"}));
  for (const auto& [asked, index] : {std::pair("", 0), std::pair("card", 0), std::pair("CARD A", 1), std::pair("integrated", 2),
                                     std::pair("2", 2), std::pair("cpu", 3), std::pair("other", 4)}) {
    const auto chosen = choose(all, asked);
    ASSERT_TRUE(chosen.ok()) << asked << ": " << chosen.error().line();
    EXPECT_EQ(int(*chosen), index) << asked;
  }
  const auto beyond = choose(all, "5");
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code, errc::unknown_device);
  EXPECT_NE(beyond.error().line().find("0 Card B, 1 card A, 2 laptop, 3 pipe, 4 other pipe"), std::string::npos) << beyond.error().line();
}
TEST(vulkan_device, what_programs_cannot_use_is_passed_over_unless_nothing_else_is_meant) {
  const std::vector<physical_device> all{fake("old card", device_kind::discrete, "shaderInt64"), fake("laptop", device_kind::integrated)};
  ASSERT_TRUE(choose(all, "").ok());
  EXPECT_EQ(int(*choose(all, "")), 1);
  const auto old = choose(all, "discrete");
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().code, errc::missing_feature);
  EXPECT_NE(old.error().line().find("old card lacks shaderInt64"), std::string::npos) << old.error().line();
  const auto none = choose({}, "");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, errc::no_device);
}
TEST(vulkan_device, an_unknown_name_is_an_error_that_lists_what_there_is) {
  vulkan_test::test_device();
  const auto d = device<target_f32>::open({.name = "voodoo"});
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::unknown_device);
  EXPECT_NE(d.error().line().find("voodoo"), std::string::npos);
  EXPECT_NE(d.error().line().find("0 " + devices<backend::vulkan>()[0].name), std::string::npos);
}
TEST(vulkan_device, without_a_loader_there_is_an_error_that_says_what_was_looked_for) {
  const auto l = library::open({"libno-such-loader.so.9", "libnor-this.so"});
  ASSERT_FALSE(l.ok());
  EXPECT_EQ(l.error().code, errc::no_device);
  EXPECT_NE(l.error().line().find("libno-such-loader.so.9, libnor-this.so"), std::string::npos);
  EXPECT_NE(l.error().line().find("apt-get install"), std::string::npos);
}
TEST(vulkan_device, memory_that_the_device_cannot_give_is_refused_with_the_sizes) {
  auto& d = vulkan_test::test_device();
  const std::int64_t huge = std::int64_t(1) << 52;
  const auto m = memory::allocate(d.context, huge, memory_use::device, "huge");
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, errc::out_of_memory);
  EXPECT_NE(m.error().line().find(std::to_string(huge)), std::string::npos);
}
TEST(vulkan_device, an_application_may_bring_its_own_device_and_take_it_back) {
  auto own = isotope_test::there(context::open(vulkan_test::test_options()));
  {
    auto d = device<target_f32>::adopt((*own)->handles());
    ASSERT_TRUE(d.ok()) << d.error().line();
    EXPECT_EQ(d->handles().device, (*own)->handle());
    auto b = d->allocate<float>(100);
    ASSERT_TRUE(b.ok()) << b.error().line();
    EXPECT_EQ(b->span()[99], 0.0f);
  }
  for (const auto& text : (*own)->messages().texts()) EXPECT_TRUE(vulkan_test::allowed(text)) << text;
  auto again = memory::allocate(*own, 1000, memory_use::upload, "still usable");
  EXPECT_TRUE(again.ok());
}
TEST(vulkan_device, what_the_host_maps_is_coherent) {
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                  cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT, coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const auto device = [](std::initializer_list<VkMemoryPropertyFlags> types) {
    VkPhysicalDeviceMemoryProperties m{};
    for (const auto flags : types) m.memoryTypes[m.memoryTypeCount++].propertyFlags = flags;
    return m;
  };
  const auto discrete = device({0, local, host | coherent, host | coherent | cached, local | host | coherent});
  EXPECT_EQ(type_for(discrete, memory_use::device, ~0u), 1);
  EXPECT_EQ(type_for(discrete, memory_use::readback, ~0u), 3);
  EXPECT_EQ(type_for(discrete, memory_use::upload, ~0u), 4);
  const auto phone = device({local | host | cached, local | host | coherent});  // cached memory alone is not coherent
  EXPECT_EQ(type_for(phone, memory_use::readback, ~0u), 1);
  EXPECT_EQ(type_for(phone, memory_use::upload, ~0u), 1);
  EXPECT_EQ(type_for(phone, memory_use::readback, 1u), -1) << "the mask allows the first type alone";
}
TEST(vulkan_device, a_limit_on_waiting_is_a_number_of_seconds_from_0_on) {
  EXPECT_EQ(nanoseconds(0), 0u);
  EXPECT_EQ(nanoseconds(1.5), 1'500'000'000u);
  EXPECT_EQ(nanoseconds(1e300), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(nanoseconds(std::numeric_limits<double>::infinity()), std::numeric_limits<std::uint64_t>::max());
  for (const double seconds : {-1.0, -1e300, std::nan("")}) {
    device_options o;
    o.timeout_seconds = seconds;
    const auto c = context::open(o);
    ASSERT_FALSE(c.ok()) << seconds;
    EXPECT_EQ(c.error().code, errc::invalid_argument);
  }
}
TEST(vulkan_device, two_backends_live_in_one_program) {
  using both = backend_list<backend::vulkan>;
  EXPECT_TRUE(both::find("vulkan").ok());
  EXPECT_EQ(both::find("cuda").error().code, errc::not_compiled_in);
}

}  // namespace device_test
}  // namespace isotope::vulkan
