#pragma once
/// What a cpu kernel receives, and how one is declared.
#include <cstddef>
#include <cstdint>
#include <span>

#include "../../core/compiler.hpp"
#include "../../core/op_info.hpp"
#include "../../core/precision.hpp"
#include "../../core/step.hpp"
#include "../../core/target.hpp"

namespace isotope::cpu {

class thread_pool;

/// A strided tensor in memory. `dims` are the actual sizes, `strides` count elements.
struct view {
  void* data = nullptr;
  shape dims;
  extents strides{};
  dtype type = dtype::f32;
  template <class T> T* as() const { return static_cast<T*>(data); }
};

/// out[i] = f(in[0][i], in[1][i], ...) for i < n, in the compute type (float; double in f64 programs): one element-wise op.
/// `scalar` is attributes::scalar. `out` may be one of the inputs. The result of an element may not depend on its position.
using block_function = void (*)(const void* const* in, void* out, std::int64_t n, double scalar);

/// Rows of f32 or bf16 numbers: row i from element i stride on; stride 0 repeats one.
struct row_view {
  const void* data = nullptr;
  std::int64_t stride = 0;
  dtype type = dtype::f32;

  /// Those from `row` on, without their first `col` numbers.
  row_view from(std::int64_t row, std::int64_t col) const {
    return {static_cast<const char*>(data) + (row * stride + col) * size_of(type), stride, type};
  }
};
/// Where the rows of a result go: as f32 to `data` and as bf16 to `rounded`, each if it is there. `rounds`: to bf16 in both.
struct row_target {
  float* data = nullptr;
  std::int64_t stride = 0;
  bool rounds = false;
  bfloat16* rounded = nullptr;
  std::int64_t rounded_stride = 0;
};
/// The same for `rows` rows of n elements: what fused bodies call where a kernel has it, because the rows of an operand and of a gemm's tile
/// seldom follow one another, and because bf16 rows need no pass of their own.
using tile_function = void (*)(const row_view* in, const row_target& out, std::int64_t rows, std::int64_t n, double scalar);

/// `micro_op`, with its op looked up.
struct instruction {
  block_function run = nullptr;
  std::int8_t arg[3]{-1, -1, -1};  // as in micro_op
  std::int8_t args = 0;
  std::int8_t store = -1;
  dtype type = dtype::f32;
  double scalar = 0;
  tile_function tile = nullptr;
};

struct launch {
  std::span<const view> in, out;
  const attributes* attr = nullptr;
  std::span<const instruction>
      body;  // fused element-wise instructions; operands of elementwise steps have the output's dims, strides 0 where repeated
  void* scratch = nullptr;
  thread_pool* pool = nullptr;
  const step_scalars* scalars = nullptr;
  std::uint32_t ordinal = 0;    // stream of random numbers
  std::uint8_t accumulate = 0;  // bit k: add to output k (already decided for the running phase)

  /// The constants of Op, whose attributes these are.
  template <class Op> auto constants() const { return Op::constants::of(*attr); }
};

/// The kernel of Op in precision P of a kernel set. A kernel op's specialisation has `static void run(const launch&)`; an element-wise
/// op's has `static void block(const void* const* in, void* out, std::int64_t n, double scalar)`. Optional: `tile`, a tile_function with
/// the bits of `block`; `inplace`, `epilogue`, constexpr `scratch(const step_shapes&)` as in kernel_info. Declared per architecture, so that
/// specialisations, wherever in isotope::cpu they are written, have their own symbols in objects of another -march.
ISOTOPE_CPU_NAMESPACE {
template <class Op, class P, class Set> struct kernel;
}

}  // namespace isotope::cpu
