#pragma once
#include <isotope/backend/vulkan.hpp>

#include "../device.hpp"

namespace plan_test {

template <class P, class K> using on = isotope::target<isotope::backend::vulkan, P, K>;
using every_target =
    ::testing::Types<on<isotope::precision::f32, isotope::kernels::reference>, on<isotope::precision::bf16, isotope::kernels::reference>,
                     on<isotope::precision::f32, isotope::kernels::portable>, on<isotope::precision::bf16, isotope::kernels::portable>,
                     on<isotope::precision::f32, isotope::kernels::native>, on<isotope::precision::bf16, isotope::kernels::native>>;

/// Two numbers a row are what the reference kernel adds up, in parts of 1,024 rows; portable falls back to it.
constexpr std::int64_t most_scratch_of_cross_entropy(std::int64_t rows) { return 2 * 4 * rows + 256; }
/// Every random program makes pipelines of its own, 10 to 50 ms each on a driver for processors. The 10,000 of a night are 1,000 on all targets together.
/// Without a device the test ends here, before a property.
inline int affordable(int cases) {
  isotope::vulkan_test::test_device();
  return cases < 200 ? 2 : cases < 10'000 ? cases / 100 : cases / 60;
}
/// A step takes a driver for processors more than 0.2 s where others use them, too: 1,000 of them would pass the time limit of a test.
inline constexpr int steps_of_a_night = 100;

/// All targets of a program on one device, so that its pipelines are made once. f64 is the processor's.
template <isotope::Target T> auto opened(int threads) {
  if constexpr (std::is_same_v<typename T::backend, isotope::backend::vulkan>) {
    auto& d = isotope::vulkan_test::test_device();
    return isotope::result<isotope::device<T>>(isotope::device<T>::over(d.context, d.pipelines));
  } else {
    return isotope::device<T>::open({.threads = threads});
  }
}

/// Without the validation layer, which allocates at every step.
template <isotope::Target T> auto opened_bare(int) { return isotope_test::there(isotope::device<T>::open()); }

}  // namespace plan_test
