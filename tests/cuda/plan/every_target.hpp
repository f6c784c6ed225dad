#pragma once
#include <isotope/backend/cuda.hpp>

#include "../device.hpp"

namespace plan_test {

template <class P, class K> using on = isotope::target<isotope::backend::cuda, P, K>;
using every_target =
    ::testing::Types<on<isotope::precision::f32, isotope::kernels::reference>, on<isotope::precision::bf16, isotope::kernels::reference>,
                     on<isotope::precision::f32, isotope::kernels::portable>, on<isotope::precision::bf16, isotope::kernels::portable>,
                     on<isotope::precision::f32, isotope::kernels::native>, on<isotope::precision::bf16, isotope::kernels::native>>;

/// The scratch bound of cross-entropy: the reference kernel, which portable falls back to, sums two numbers per row in parts of 1,024 rows.
constexpr std::int64_t most_scratch_of_cross_entropy(std::int64_t rows) { return 2 * 4 * rows + 256; }
/// How many of `cases` random programs the tests run on this backend. The emulated device takes 10 to 100 ns for each thread of each kernel. Without a device
/// the test ends here, before the property starts.
inline int affordable(int cases) {
  isotope::cuda_test::test_device();
  return cases < 200 ? 2 : cases < 10'000 ? cases / 100 : cases / 60;
}
/// Few enough for the emulated device.
inline constexpr int steps_of_a_night = 100;

/// Opens a target on the device that all targets share, so that code is loaded once. f64 targets run on the processor.
template <isotope::Target T> auto opened(int threads) {
  if constexpr (std::is_same_v<typename T::backend, isotope::backend::cuda>) {
    auto& d = isotope::cuda_test::test_device();
    return isotope::result<isotope::device<T>>(isotope::device<T>::over(d.context, d.functions));
  } else {
    return isotope::device<T>::open({.threads = threads});
  }
}

/// Opens a device of its own.
template <isotope::Target T> auto opened_bare(int threads) {
  if constexpr (std::is_same_v<typename T::backend, isotope::backend::cuda>)
    return isotope_test::there(isotope::device<T>::open(isotope::cuda_test::test_options()));
  else return opened<T>(threads);
}

}  // namespace plan_test
