#pragma once
/// A product with few rows (or columns: then the transposed product) and lines of both operands along K: which of them are bound by
/// the bytes of the wide operand, and how many blocks and parts of K read it.
#include <isotope/kernels/cuda/gemm/job.hpp>

namespace isotope::cuda {

struct few_rows {
  static constexpr std::int64_t most = 16;
  /// Weights of so many elements take longer to read than a kernel takes to start. With fewer, and more than four rows, tiles are as fast.
  static constexpr std::int64_t wide_elements = 1 << 16;

  bool swapped;
  std::int64_t few, many;
  const matmul_operand &left, &right;  // of few and of many lines

  explicit few_rows(const matmul_job& j)
      : swapped(j.s.N < j.s.M),
        few(std::min(j.s.M, j.s.N)),
        many(std::max(j.s.M, j.s.N)),
        left(swapped ? j.s.b : j.s.a),
        right(swapped ? j.s.a : j.s.b) {}

  bool along_k() const { return !left.cross && !right.cross; }
  bool formats(dtype of_left, dtype of_right) const { return left.type == of_left && right.type == of_right; }
  /// Whether weights are wide enough for kernels that take more rows than four.
  bool wide(const matmul_job& j) const { return !swapped && few <= most && many * j.s.K >= wide_elements; }

  /// A kernel of a block for every `columns` columns.
  matmul_job::form form(const device_code& code, std::string_view function, std::int64_t columns) const {
    matmul_job::form f;
    f.code = &code;
    f.function = function;
    f.tiles = (many + columns - 1) / columns;
    f.eights = !swapped;
    f.swapped = swapped;
    return f;
  }
  /// Parts of K where the blocks of `f` fill less than half of the device.
  matmul_split::choice split(const matmul_job& j, const matmul_job::form& f) const {
    const matmul_shape& s = j.s;
    const std::int64_t units = j.given->device->multiprocessors, blocks = f.tiles * s.batches();
    if (swapped || 2 * blocks >= units) return {1, s.K, 0};
    const std::int64_t parts = std::min(matmul_split::limit(s.batches() * s.M * s.N, s.K), 2 * units / blocks);
    const std::int64_t depth = (s.K + parts * 64 - 1) / (parts * 64) * 64;
    if (parts <= 1) return {1, s.K, 0};
    return {(s.K + depth - 1) / depth, depth, 0};
  }
};

}  // namespace isotope::cuda
