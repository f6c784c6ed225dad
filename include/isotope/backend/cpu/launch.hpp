#pragma once
/// The arguments of a cpu kernel, and the template that kernels specialise.
#include <cstddef>
#include <cstdint>
#include <span>

#include "../../core/compiler.hpp"
#include "../../core/op_info.hpp"
#include "../../core/precision.hpp"
#include "../../core/step.hpp"
#include "../../core/target.hpp"
#include "../../plan/choose_kernel.hpp"

namespace isotope::cpu {

class thread_pool;
class collective_run;  // backend/cpu/collective_run.hpp

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

/// Rows of f32 or bf16 numbers. Row i starts at element i * stride; with stride 0 all rows are the same one.
struct row_view {
  const void* data = nullptr;
  std::int64_t stride = 0;
  dtype type = dtype::f32;

  /// The rows from `row` on, each without its first `col` numbers.
  row_view from(std::int64_t row, std::int64_t col) const {
    return {static_cast<const char*>(data) + (row * stride + col) * size_of(type), stride, type};
  }
};
/// Where the rows of a result are stored: as f32 at `data` and as bf16 at `rounded`; null means not there. `rounds`: the f32 are rounded to bf16 too.
struct row_target {
  float* data = nullptr;
  std::int64_t stride = 0;
  bool rounds = false;
  bfloat16* rounded = nullptr;
  std::int64_t rounded_stride = 0;
};
/// A block_function for `rows` rows of n elements. Fused bodies call it where a kernel provides one: the rows of an operand and of a matmul's output tile
/// are seldom contiguous, and it reads and writes bf16 rows without a separate conversion pass.
using tile_function = void (*)(const row_view* in, const row_target& out, std::int64_t rows, std::int64_t n, double scalar);

/// A `micro_op` whose op has been resolved to the code that runs it.
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
      body;  // fused element-wise instructions; operands of elementwise steps have the output's dims, with stride 0 along broadcast axes
  void* scratch = nullptr;
  thread_pool* pool = nullptr;
  const step_scalars* scalars = nullptr;
  std::uint32_t ordinal = 0;          // which random stream an op draws from
  std::uint8_t accumulate = 0;        // bit k: add to output k in the phase that runs
  int summed = -1;                    // the output whose column sums are asked for (kernel_info::column_sums); -1: none are
  collective_run* ranks = nullptr;    // for collectives; null: there is one rank
  const view* column_sums = nullptr;  // where they go; `out` is without them
  kernel_choices* choices = nullptr;  // of a kernel that chooses among variants: what is asked for and considered; null: nobody asks
  int variant = -1;                   // the one of its list that a kernel takes where nobody asks; -1: it chooses

  /// The attributes of the launch as the constants of Op.
  template <class Op> auto constants() const { return Op::constants::of(*attr); }
};

/// The kernel of Op in precision P of a kernel set. A kernel op's specialisation has `static void run(const launch&)`; an element-wise
/// op's has `static void block(const void* const* in, void* out, std::int64_t n, double scalar)`. Optional: `tile`, a tile_function with
/// the same results, bit for bit, as `block`; `consider(const launch&)`, which only makes the choice that `run` makes among variants; `inplace`, `epilogue`, constexpr `scratch(const step_shapes&)` and `column_sums` as in kernel_info. The template is
/// declared per -march, so that objects compiled for different -march have different symbols for its specialisations.
ISOTOPE_CPU_NAMESPACE {
template <class Op, class P, class Set> struct kernel;
}

}  // namespace isotope::cpu
