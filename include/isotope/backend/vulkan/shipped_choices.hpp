#pragma once
/// Choices among variants of kernels that bench_variants measured on a device of that name. They serve where the user's file has no choice.
/// bench/ship_choices.py writes this file.
#include <array>
#include <span>

#include "../queue/variant_cache.hpp"

namespace isotope::vulkan {

// clang-format off
inline constexpr std::array<shipped_choices, 1> measured_choices{{
    {"NVIDIA H200",
     "matmul native bf16[2304,4096]/1,2304 bf16[4096,768] > f32[2304,768] 4b72e60df2f4321b"
     "\t128 x 128 of 4 x 2 subgroups, slabs of 64\n"
     "matmul native bf16[3072,4096]/1,3072 bf16[4096,768] > f32[3072,768] 1772e60fea90321c"
     "\t128 x 128 of 4 x 2 subgroups, slabs of 64, K in 4 parts\n"
     "matmul native bf16[4,1024,2304] bf16[2304,768] > bf16[4,1024,768] cfa4cf29f41f74d9"
     "\t192 x 128 of 4 x 2 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,3072] bf16[3072,768] > bf16[4,1024,768] cfa4cf29f41f74d9"
     "\t192 x 128 of 4 x 2 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,3072] bf16[3072,768]/1,3072 bf16[4,1024,768]/0,0,1 bf16[4,1024,768] > bf16[4,1024,768] ee7ea7d"
     "101f33eb0"
     "\t128 x 192 of 2 x 4 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,50304] bf16[50304,768] > bf16[4,1024,768] cfa4cf29f41f74d9"
     "\t192 x 128 of 4 x 2 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,768] bf16[768,2304]/1,768 bf16[4,1024,2304]/0,0,1 > bf16[4,1024,2304] d3349a49420b0f15"
     "\t128 x 192 of 2 x 4 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,768] bf16[768,3072] bf16[4,1024,3072] > bf16[4,1024,3072] 4b920b1f1f2c92a"
     "\t192 x 128 of 4 x 2 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,768] bf16[768,3072]/1,768 bf16[4,1024,3072]/0,0,1 > bf16[4,1024,3072] bf16[4,1024,3072] ae370e"
     "1a39594674"
     "\t128 x 192 of 2 x 4 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,768] bf16[768,50304]/1,768 > bf16[4,1024,50304] fa4cf2cf2df74c1"
     "\t128 x 192 of 2 x 4 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,768] bf16[768,768] > bf16[4,1024,768] 4fa4cf321f9f7426"
     "\t192 x 128 of 4 x 2 subgroups, slabs of 64\n"
     "matmul native bf16[4,1024,768] bf16[768,768]/1,768 bf16[4,1024,768]/0,0,1 bf16[4,1024,768] > bf16[4,1024,768] 6e7ea7d438"
     "733eb9"
     "\t128 x 192 of 2 x 4 subgroups, slabs of 64\n"
     "matmul native bf16[50304,4096]/1,50304 bf16[4096,768] > f32[50304,768] 8772e60892c03203"
     "\t128 x 128 of 4 x 2 subgroups, slabs of 64\n"
     "matmul native bf16[768,4096]/1,768 bf16[4096,3072] > f32[768,3072] 1772e60fea90321c"
     "\t128 x 128 of 4 x 2 subgroups, slabs of 64, K in 4 parts\n"
     "matmul native bf16[768,4096]/1,768 bf16[4096,768] > f32[768,768] c772e616478032e5"
     "\t128 x 128 of 2 x 2 subgroups, slabs of 32, K in 7 parts\n"
    },
}};
// clang-format on
inline std::span<const shipped_choices> shipped() { return measured_choices; }

}  // namespace isotope::vulkan
