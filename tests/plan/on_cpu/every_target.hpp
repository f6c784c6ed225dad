#pragma once
namespace plan_test {

template <class P, class K> using on = on_cpu<P, K>;
using every_target =
    ::testing::Types<on<isotope::precision::f32, isotope::kernels::reference>, on<isotope::precision::bf16, isotope::kernels::reference>,
                     on<isotope::precision::f32, isotope::kernels::portable>, on<isotope::precision::bf16, isotope::kernels::portable>>;

template <isotope::Target T> auto opened(int threads) { return isotope::device<T>::open({.threads = threads}); }

}  // namespace plan_test
