#pragma once
/// The targets of typed plan tests: every kernel set and precision of the backend that the tests are built for.
#include <isotope/backend/cpu.hpp>

#include <gtest/gtest.h>

#include <string>

namespace plan_test {

template <class P, class K> using on_cpu = isotope::target<isotope::backend::cpu, P, K>;
using reference_f64 = on_cpu<isotope::precision::f64, isotope::kernels::reference>;

struct target_name {
  template <class T> static std::string GetName(int) { return std::string(T::kernel_set::name) + '_' + std::string(T::precision::name); }
};

}  // namespace plan_test

// tests/<backend>/plan/ defines on<P, K>, every_target, and opened<T>(threads), which opens a device of a target.
#include <every_target.hpp>

namespace plan_test {

using reference_f32 = on<isotope::precision::f32, isotope::kernels::reference>;
using reference_bf16 = on<isotope::precision::bf16, isotope::kernels::reference>;
using portable_f32 = on<isotope::precision::f32, isotope::kernels::portable>;
using portable_bf16 = on<isotope::precision::bf16, isotope::kernels::portable>;

}  // namespace plan_test
