#pragma once
/// Whether products of bf16 pairs are worth their instruction. vdpbf16ps has the rate of an f32 multiply-add, and so twice its flops, on AMD's Zen 4 and 5; on
/// Intel's processors since Sapphire Rapids it has a quarter of that rate, and so half the flops: 84 GFLOP/s where f32 reaches 175 (one thread, measured).
///
/// The processor's identity decides, not a measurement, since the two orders of addition have other bits, and a program should have the same ones in each run.
#include <string_view>

#include "vendor.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace isotope::cpu {

/// Whether pairs are slower than f32 on a processor of this vendor, by CPUID, with or without instructions for f16 in 512 bits (AVX512-FP16), which Intel's
/// processors have since Sapphire Rapids, also in virtual machines that hide the matrix unit.
constexpr bool pairs_are_slow(std::string_view vendor, bool has_f16) { return vendor == "GenuineIntel" && has_f16; }

struct pair_rate {
  /// Whether bf16 programs should multiply pairs where there is no matrix unit, or none is permitted; otherwise they multiply in f32.
  static bool fast() {
    static const bool answer = !slow_here();
    return answer;
  }

 private:
  static bool slow_here() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && pairs_are_slow(vendor(), (d >> 23 & 1) != 0);
#else
    return false;
#endif
  }
};

}  // namespace isotope::cpu
