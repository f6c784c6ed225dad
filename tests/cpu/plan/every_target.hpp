#pragma once
namespace plan_test {

template <class P, class K> using on = on_cpu<P, K>;
using every_target =
    ::testing::Types<on<isotope::precision::f32, isotope::kernels::reference>, on<isotope::precision::bf16, isotope::kernels::reference>,
                     on<isotope::precision::f32, isotope::kernels::portable>, on<isotope::precision::bf16, isotope::kernels::portable>,
                     on<isotope::precision::f32, isotope::kernels::native>, on<isotope::precision::bf16, isotope::kernels::native>>;

/// The scratch bound of cross-entropy: one f32 per row.
constexpr std::int64_t most_scratch_of_cross_entropy(std::int64_t rows) { return 4 * rows; }
/// How many of `cases` random programs the tests run on this backend.
constexpr int affordable(int cases) { return cases; }
/// How many steps the nightly test trains to see that memory does not grow.
inline constexpr int steps_of_a_night = 1000;

template <isotope::Target T> auto opened(int threads) { return isotope::device<T>::open({.threads = threads}); }

/// A device on which only the library allocates.
template <isotope::Target T> auto opened_bare(int threads) { return opened<T>(threads); }

}  // namespace plan_test
