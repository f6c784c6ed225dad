#pragma once
/// Whether the processor has the features that the kernels were compiled for. Without this check, a program would end in an illegal instruction.
#include <array>
#include <cstddef>
#include <string_view>

#include "../../core/compiler.hpp"
#include "tile_permission.hpp"

namespace isotope::cpu {

/// The instruction set extensions that the compiler may use, and whether this processor has each of them.
class processor_features {
 public:
  struct feature {
    std::string_view name;
    bool there = false;
  };
  constexpr void push(feature f) { all_[size_++] = f; }
  /// The name of the first feature that the processor lacks; empty if it has all.
  constexpr std::string_view missing() const {
    for (std::size_t i = 0; i < size_; ++i)
      if (!all_[i].there) return all_[i].name;
    return {};
  }

 private:
  std::array<feature, 40> all_{};
  std::size_t size_ = 0;
};

ISOTOPE_CPU_NAMESPACE {
/// The features that the flags of this translation unit enable.
inline processor_features features_here() {
  processor_features r;
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
#if defined(__SSE3__)
  r.push({"sse3", __builtin_cpu_supports("sse3") != 0});
#endif
#if defined(__SSSE3__)
  r.push({"ssse3", __builtin_cpu_supports("ssse3") != 0});
#endif
#if defined(__SSE4_1__)
  r.push({"sse4.1", __builtin_cpu_supports("sse4.1") != 0});
#endif
#if defined(__SSE4_2__)
  r.push({"sse4.2", __builtin_cpu_supports("sse4.2") != 0});
#endif
#if defined(__POPCNT__)
  r.push({"popcnt", __builtin_cpu_supports("popcnt") != 0});
#endif
#if defined(__AVX__)
  r.push({"avx", __builtin_cpu_supports("avx") != 0});
#endif
#if defined(__AVX2__)
  r.push({"avx2", __builtin_cpu_supports("avx2") != 0});
#endif
#if defined(__BMI__)
  r.push({"bmi", __builtin_cpu_supports("bmi") != 0});
#endif
#if defined(__BMI2__)
  r.push({"bmi2", __builtin_cpu_supports("bmi2") != 0});
#endif
#if defined(__F16C__)
  r.push({"f16c", __builtin_cpu_supports("f16c") != 0});
#endif
#if defined(__FMA__)
  r.push({"fma", __builtin_cpu_supports("fma") != 0});
#endif
#if defined(__LZCNT__)
  r.push({"lzcnt", __builtin_cpu_supports("lzcnt") != 0});
#endif
#if defined(__MOVBE__)
  r.push({"movbe", __builtin_cpu_supports("movbe") != 0});
#endif
#if defined(__AVX512F__)
  r.push({"avx512f", __builtin_cpu_supports("avx512f") != 0});
#endif
#if defined(__AVX512BW__)
  r.push({"avx512bw", __builtin_cpu_supports("avx512bw") != 0});
#endif
#if defined(__AVX512CD__)
  r.push({"avx512cd", __builtin_cpu_supports("avx512cd") != 0});
#endif
#if defined(__AVX512DQ__)
  r.push({"avx512dq", __builtin_cpu_supports("avx512dq") != 0});
#endif
#if defined(__AVX512VL__)
  r.push({"avx512vl", __builtin_cpu_supports("avx512vl") != 0});
#endif
#if defined(__AVX512IFMA__)
  r.push({"avx512ifma", __builtin_cpu_supports("avx512ifma") != 0});
#endif
#if defined(__AVX512VBMI__)
  r.push({"avx512vbmi", __builtin_cpu_supports("avx512vbmi") != 0});
#endif
#if defined(__AVX512VBMI2__)
  r.push({"avx512vbmi2", __builtin_cpu_supports("avx512vbmi2") != 0});
#endif
#if defined(__AVX512BITALG__)
  r.push({"avx512bitalg", __builtin_cpu_supports("avx512bitalg") != 0});
#endif
#if defined(__AVX512VPOPCNTDQ__)
  r.push({"avx512vpopcntdq", __builtin_cpu_supports("avx512vpopcntdq") != 0});
#endif
#if defined(__AVX512VNNI__)
  r.push({"avx512vnni", __builtin_cpu_supports("avx512vnni") != 0});
#endif
#if defined(__GFNI__)
  r.push({"gfni", __builtin_cpu_supports("gfni") != 0});
#endif
#if defined(__AVX512BF16__)
  r.push({"avx512bf16", __builtin_cpu_supports("avx512bf16") != 0});
#endif
#if defined(__AVX512FP16__)
  r.push({"avx512fp16", __builtin_cpu_supports("avx512fp16") != 0});
#endif
#if defined(__AVXVNNI__)
  r.push({"avxvnni", __builtin_cpu_supports("avxvnni") != 0});
#endif
#if defined(__AVXIFMA__)
  r.push({"avxifma", __builtin_cpu_supports("avxifma") != 0});
#endif
#if defined(__SSE4A__)
  r.push({"sse4a", __builtin_cpu_supports("sse4a") != 0});
#endif
#if defined(__FMA4__)
  r.push({"fma4", __builtin_cpu_supports("fma4") != 0});
#endif
#if defined(__XOP__)
  r.push({"xop", __builtin_cpu_supports("xop") != 0});
#endif
#if defined(__TBM__)
  r.push({"tbm", __builtin_cpu_supports("tbm") != 0});
#endif
#if defined(__PCLMUL__)
  r.push({"pclmul", __builtin_cpu_supports("pclmul") != 0});
#endif
#if defined(__AMX_TILE__)
  r.push({"amx-tile", tile_features_here().tile});
#endif
#if defined(__AMX_BF16__)
  r.push({"amx-bf16", tile_features_here().bf16});
#endif
#if defined(__AMX_INT8__)
  r.push({"amx-int8", tile_features_here().bytes});
#endif
  return r;
}
}  // namespace arch

}  // namespace isotope::cpu
