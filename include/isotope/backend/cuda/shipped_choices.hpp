#pragma once
/// Choices among variants of kernels that bench_variants measured on a device of that name. They serve where the user's file has no choice.
/// bench/ship_choices.py writes this file.
#include <array>
#include <span>

#include "../queue/variant_cache.hpp"

namespace isotope::cuda {

// clang-format off
inline constexpr std::array<shipped_choices, 2> measured_choices{{
    {"NVIDIA H200",
     "matmul native bf16[4,1024,3072] bf16[3072,768]/1,3072 bf16[4,1024,768]/0,0,1 bf16[4,1024,768] > bf16[4,1024,768] ee7ea7d"
     "101f33eb0"
     "\t128 x 192\n"
     "matmul native bf16[4,1024,768] bf16[768,2304]/1,768 bf16[4,1024,2304]/0,0,1 > bf16[4,1024,2304] d3349a49420b0f15"
     "\t128 x 192\n"
     "matmul native bf16[4,1024,768] bf16[768,3072] bf16[4,1024,3072] > bf16[4,1024,3072] d2cc1eef5f9e85b4"
     "\t128 x 128 in clusters of 2\n"
     "matmul native bf16[4,1024,768] bf16[768,3072]/1,768 bf16[4,1024,3072]/0,0,1 > bf16[4,1024,3072] bf16[4,1024,3072] ae370e"
     "1a39594674"
     "\t128 x 128\n"
     "matmul native bf16[4,1024,768] bf16[768,768]/1,768 bf16[4,1024,768]/0,0,1 bf16[4,1024,768] > bf16[4,1024,768] 6e7ea7d438"
     "733eb9"
     "\t128 x 192\n"
    },
    {"NVIDIA H200",
     "matmul native bf16[32,1024,3072] bf16[3072,768]/1,3072 bf16[32,1024,768]/0,0,1 bf16[32,1024,768] > bf16[32,1024,768] 2e7"
     "ea7d20b333e98"
     "\t128 x 192 in clusters of 2\n"
     "matmul native bf16[32,1024,768] bf16[768,2304]/1,768 bf16[32,1024,2304]/0,0,1 > bf16[32,1024,2304] d3349a49420b0f15"
     "\t128 x 256 in clusters of 2\n"
     "matmul native bf16[32,1024,768] bf16[768,3072] bf16[32,1024,3072] > bf16[32,1024,3072] c8cc1eefff6085b7"
     "\t128 x 128 in clusters of 2\n"
     "matmul native bf16[32,1024,768] bf16[768,3072]/1,768 bf16[32,1024,3072]/0,0,1 > bf16[32,1024,3072] bf16[32,1024,3072] ae"
     "370e1a39594674"
     "\t128 x 256 in clusters of 2\n"
     "matmul native bf16[32,1024,768] bf16[768,768]/1,768 bf16[32,1024,768]/0,0,1 bf16[32,1024,768] > bf16[32,1024,768] 2e7ea7"
     "d20b333e98"
     "\t128 x 192 in clusters of 2\n"
    },
}};
// clang-format on
inline std::span<const shipped_choices> shipped() { return measured_choices; }

}  // namespace isotope::cuda
