#pragma once
/// Compares portable and native kernels with the reference kernel of the same op, and their results on 1, 2, 3 and 5 threads with each other.
#include <gtest/gtest.h>
#include <isotope/kernels/cpu/all.hpp>

#include <cmath>
#include <cstring>

#include "call.hpp"

namespace isotope_test {

inline cpu::thread_pool& pool_of(int threads) {
  static cpu::thread_pool one(1), two(2), three(3), five(5);
  return threads == 1 ? one : threads == 2 ? two : threads == 3 ? three : five;
}

/// The kernel that a program of kernel set Set runs: that of the set, or of the set that it falls back to.
template <class Op, class P, class Set> struct kernel_in {
  using type = cpu::kernel<Op, P, kernels::portable>;
};
template <class Op, class P> requires requires { sizeof(cpu::kernel<Op, P, kernels::native>); } struct kernel_in<Op, P, kernels::native> {
  using type = cpu::kernel<Op, P, kernels::native>;
};
template <class Op, class P, class Set> using kernel_of = typename kernel_in<Op, P, Set>::type;

/// The operands of one run of a kernel. `out` gives shapes and formats. Bit k of `inout` says that output k is input k, updated in place.
struct op_case {
  std::vector<cpu::view> in;
  std::vector<array> out;
  attributes attr;
  std::vector<cpu::instruction> body;
  step_scalars scalars;
  std::uint8_t inout = 0, accumulate = 0;
  std::uint32_t ordinal = 0;

  op_case(std::vector<cpu::view> inputs, std::vector<array>&& outputs, attributes a = {})
      : in(std::move(inputs)), out(std::move(outputs)), attr(a) {}

  template <class Kernel> std::vector<array> run(cpu::thread_pool* pool) const {
    std::vector<array> results;
    call c;
    c.in = in;
    for (std::size_t k = 0; k < out.size(); ++k) {
      results.emplace_back(out[k].v.dims, out[k].v.type);
      std::memcpy(results[k].bytes.data(), out[k].bytes.data(), out[k].bytes.size());
      results[k].v.data = results[k].bytes.data();
      if ((inout >> k) & 1) {
        for (std::int64_t i = 0; i < out[k].count(); ++i) results[k].set(i, value(in[k], i));
        c.in[k].data = results[k].v.data;
      }
      c.out.push_back(results[k].v);
    }
    c.attr = attr;
    c.body = body;
    c.scalars = scalars;
    c.ordinal = ordinal;
    c.accumulate = accumulate;
    c.run<Kernel>(pool);
    EXPECT_TRUE(c.scratch_kept) << "wrote past its scratch memory";
    return results;
  }
  static double value(const cpu::view& v, std::int64_t i) {
    return v.type == dtype::bf16 ? double(float(v.as<bfloat16>()[i])) : double(v.as<float>()[i]);
  }
};

/// Expects |given - reference| <= tolerance (|reference| + the largest |reference| of the output), with NaN and infinities at the same places, and the
/// same bits on 1, 2, 3 and 5 threads.
template <class Op, class P, class Set>
void expect_set_matches(const op_case& c, const std::vector<array>& wanted, std::vector<double> tolerance) {
  const auto given = c.run<cpu::kernel<Op, P, Set>>(&pool_of(1));
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    double largest = 0;
    for (std::int64_t i = 0; i < wanted[k].count(); ++i)
      if (std::isfinite(wanted[k].at(i))) largest = std::fmax(largest, std::fabs(wanted[k].at(i)));
    for (std::int64_t i = 0; i < wanted[k].count(); ++i) {
      const double w = wanted[k].at(i), g = given[k].at(i);
      if (std::isnan(w) ? std::isnan(g) : w == g) continue;
      ASSERT_TRUE(std::fabs(g - w) <= tolerance[k] * (std::fabs(w) + largest))
          << Set::name << ' ' << Op::name << " output " << k << " element " << i << " of " << wanted[k].count() << ": " << g
          << ", reference " << w << ", largest " << largest;
    }
  }
  // Native matmuls pack operands per thread for up to four threads, and once for all if there are more.
  for (const int threads : {2, 3, 5}) {
    const auto again = c.run<cpu::kernel<Op, P, Set>>(&pool_of(threads));
    for (std::size_t k = 0; k < given.size(); ++k)
      ASSERT_EQ(0, std::memcmp(given[k].bytes.data(), again[k].bytes.data(), given[k].bytes.size()))
          << Set::name << ' ' << Op::name << " output " << k << " differs with " << threads << " threads";
  }
}
template <class Op, class P> void expect_matches(const op_case& c, std::vector<double> tolerance) {
  const auto wanted = c.run<cpu::kernel<Op, P, kernels::reference>>(nullptr);
  expect_set_matches<Op, P, kernels::portable>(c, wanted, tolerance);
  if constexpr (requires { sizeof(cpu::kernel<Op, P, kernels::native>); }) expect_set_matches<Op, P, kernels::native>(c, wanted, tolerance);
}

}  // namespace isotope_test
