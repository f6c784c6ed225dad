#pragma once
#include <isotope/backend/vulkan.hpp>

#include "../device.hpp"

namespace plan_test {

template <class P, class K> using on = isotope::target<isotope::backend::vulkan, P, K>;
/// By day, four targets are left out, since each takes a software driver minutes: the tests of ops run on all targets.
#ifdef ISOTOPE_TESTS_OF_A_NIGHT
using every_target =
    ::testing::Types<on<isotope::precision::f32, isotope::kernels::reference>, on<isotope::precision::bf16, isotope::kernels::reference>,
                     on<isotope::precision::f32, isotope::kernels::portable>, on<isotope::precision::bf16, isotope::kernels::portable>,
                     on<isotope::precision::f32, isotope::kernels::native>, on<isotope::precision::bf16, isotope::kernels::native>>;
#else
using every_target =
    ::testing::Types<on<isotope::precision::f32, isotope::kernels::native>, on<isotope::precision::bf16, isotope::kernels::portable>>;
#endif

/// The scratch bound of cross-entropy: the reference kernel, which portable falls back to, sums two numbers per row in parts of 1,024 rows.
constexpr std::int64_t most_scratch_of_cross_entropy(std::int64_t rows) { return 2 * 4 * rows + 256; }
/// How many of `cases` random programs the tests run on this backend. Every program needs its own pipelines, which take 10 to 50 ms each on a software driver;
/// of 10,000 nightly cases, 1,000 remain for all targets together. Without a device the test ends here, before the property starts.
inline int affordable(int cases) {
  isotope::vulkan_test::test_device();
  return cases < 200 ? 2 : cases < 10'000 ? cases / 100 : cases / 60;
}
/// A step takes a software driver more than 0.2 s on a busy machine, so 1,000 steps would exceed the time limit of a test.
inline constexpr int steps_of_a_night = 100;

/// Opens a target on the device that all targets share, so that pipelines are created once. f64 targets run on the processor.
template <isotope::Target T> auto opened(int threads) {
  if constexpr (std::is_same_v<typename T::backend, isotope::backend::vulkan>) {
    auto& d = isotope::vulkan_test::test_device();
    return isotope::result<isotope::device<T>>(isotope::device<T>::over(d.context, d.pipelines));
  } else {
    return isotope::device<T>::open({.threads = threads});
  }
}

/// Opens a device without the validation layer, which allocates at every step.
template <isotope::Target T> auto opened_bare(int) { return isotope_test::there(isotope::device<T>::open()); }

}  // namespace plan_test
