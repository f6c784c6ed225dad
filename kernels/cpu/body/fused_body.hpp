#pragma once
/// The interpreter of fused element-wise bodies, which element-wise steps and gemm epilogues run, on tiles of 1024 elements.
///
/// Bound by bytes for plain arithmetic. A tile of every operand stays in L1 while all instructions pass over it. Rows of f32 operands are read in
/// place, and results go straight to an f32 output.
#include <isotope/kernels/cpu/body/block_access.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// A range of rows in the flat index: [first + i step, first + i step + n) for i < rows. Only a range within rows of the operands' inner axis has
/// more than one row.
struct body_range {
  std::int64_t first, n, rows = 1, step = 0;
};

class fused_body {
 public:
  static constexpr std::int64_t block = 1024;

  /// The body of launch l. Its operands follow the `own` operands of the host node. Operands and outputs have the dims of output 0.
  explicit fused_body(const launch& l, std::size_t own = 0) : l_(l), own_(own), axes_(l.out[0].dims, l.in.subspan(own)) {
    for (const auto& i : l.body)
      for (int a = 0; a < i.args; ++a) {
        if (i.arg[a] == isotope::gemm_result && i.tile == nullptr) product_wide_ = true;
        if (i.arg[a] < 0) continue;
        if (i.arg[a] >= max_inputs) {
          if (i.tile == nullptr) read_wide_ |= 1u << (i.arg[a] - max_inputs);
          continue;
        }
        used_ |= 1u << i.arg[a];
        if (i.tile == nullptr) widened_ |= 1u << i.arg[a];
      }
    for (std::size_t j = 0; j < l.body.size(); ++j) at_once_[j] = writes_at_once(j);
  }

  /// Runs the body on the elements [first, end).
  void run(std::int64_t first, std::int64_t end) const {
    const std::int64_t inner = axes_.rank == 1 || axes_.inner() < shortest_row ? block : axes_.inner();
    while (first < end) {
      const std::int64_t left = end - first, at = inner == block ? 0 : first % inner;
      body_range r{first, smaller(smaller(left, inner - at), block)};
      if (inner < block && at == 0 && left >= inner) {
        r.rows = smaller(left / inner, block / padded(inner));
        r.step = inner;
      }
      run_tile(r, {});
      first += r.n + (r.rows - 1) * r.step;
    }
  }
  /// Runs the body on `rows` rows and n columns of the host node's matrix, which is N columns wide; `at` is the flat index of the first element.
  void run(std::int64_t at, std::int64_t rows, std::int64_t n, std::int64_t N, row_view product) const {
    const std::int64_t high = larger_of(1, block / padded(n));
    for (std::int64_t i = 0; i < rows; i += high)
      for (std::int64_t j = 0; j < n; j += block)
        run_tile({at + i * N + j, smaller(block, n - j), smaller(high, rows - i), N}, product.from(i, j));
  }
  /// Whether the body accepts the host's result in bf16.
  bool takes_bf16_product() const { return !product_wide_; }
  /// Whether rows of n elements are long enough to be worth their own loops.
  static bool long_enough(std::int64_t n) { return n >= shortest_row; }

 private:
  static constexpr std::int64_t shortest_row = 48;
  struct alignas(64) slot {
    float at[block + 16];  // 4 KB and a cache line: buffers exactly 4 KB apart would stall each other
  };
  struct place {
    std::int64_t row, col;  // position of the range's first element, in rows of the inner axis
  };
  static constexpr std::int64_t padded(std::int64_t n) { return (n + 15) / 16 * 16; }

  /// The rows of all values. Pointers and strides are separate arrays so that each is loaded as it was stored: loading a pair at once would wait
  /// until the earlier stores, those of a whole tile, reach L1.
  struct value_rows {
    const void* data[max_inputs + max_micro_ops];
    std::int64_t stride[max_inputs + max_micro_ops];
    dtype type[max_inputs + max_micro_ops];
    void set(std::size_t v, const row_view& rows) {
      data[v] = rows.data;
      stride[v] = rows.stride;
      type[v] = rows.type;
    }
  };

  void run_tile(const body_range& r, row_view product) const {
    slot buffer[max_inputs + max_micro_ops];
    value_rows values;
    const std::int64_t width = padded(r.n);  // row pitch in the buffers
    const place at{r.first / axes_.inner(), r.first % axes_.inner()};
    for (std::size_t k = own_; k < l_.in.size(); ++k)
      if ((used_ >> k) & 1u) values.set(k, fetch(k, r, at, width, buffer[k].at));
    for (std::size_t j = 0; j < l_.body.size(); ++j) {
      const instruction& i = l_.body[j];
      row_view args[3];
      for (int a = 0; a < i.args; ++a) {
        const bool made = i.arg[a] == isotope::gemm_result;
        args[a].data = made ? product.data : values.data[i.arg[a]];
        args[a].stride = made ? product.stride : values.stride[i.arg[a]];
        args[a].type = made ? product.type : values.type[i.arg[a]];
      }
      const row_target to = target_of(j, r, buffer[max_inputs + j].at, width);
      if (i.tile != nullptr) i.tile(args, to, r.rows, r.n, i.scalar);
      else by_rows(i, args, to, r);
      if (i.type == dtype::f16)
        for (std::int64_t m = 0; m < r.rows; ++m) {
          float* x = to.data + m * to.stride;
          math::map(r.n, x, [](float v) ISOTOPE_INLINE_LAMBDA { return float(float16(v)); }, x);
        }
      if (to.data == nullptr) values.set(max_inputs + j, {to.rounded, to.rounded_stride, dtype::bf16});
      else values.set(max_inputs + j, {to.data, to.stride, dtype::f32});
    }
    // Stores come last, because an output may overlap an operand that was read in place.
    for (std::size_t j = 0; j < l_.body.size(); ++j)
      if (l_.body[j].store >= 0 && !at_once_[j])
        for (std::int64_t m = 0; m < r.rows; ++m) {
          const auto* rows = static_cast<const float*>(values.data[max_inputs + j]);
          store(l_.body[j].store, r.first + m * r.step, r.n, rows + m * values.stride[max_inputs + j]);
        }
  }

  row_target target_of(std::size_t j, const body_range& r, float* buffer, std::int64_t width) const {
    const instruction& i = l_.body[j];
    row_target to{buffer, width, i.type == dtype::bf16};
    if (!at_once_[j]) return to;
    const view& y = l_.out[std::size_t(i.store)];
    if (y.type == dtype::f32) return {y.as<float>() + r.first, r.step};
    to.rounded = y.as<bfloat16>() + r.first;
    to.rounded_stride = r.step;
    if (i.tile != nullptr && ((read_wide_ >> j) & 1u) == 0) to.data = nullptr;
    return to;
  }
  /// Runs an instruction that has no `tile` function; its operands are f32.
  static void by_rows(const instruction& i, const row_view* args, const row_target& to, const body_range& r) {
    for (std::int64_t m = 0; m < r.rows; ++m) {
      const void* row[3] = {};
      for (int a = 0; a < i.args; ++a) row[a] = static_cast<const float*>(args[a].data) + m * args[a].stride;
      float* y = to.data + m * to.stride;
      i.run(row, y, r.n, i.scalar);
      if (to.rounded != nullptr) math::round_to_bf16(y, to.rounded + m * to.rounded_stride, r.n);
      else if (to.rounds) math::round_to_bf16(y, r.n);
    }
  }

  /// Whether instruction j may write to its output at once: the format matches, and no later instruction reads an input at that place.
  bool writes_at_once(std::size_t j) const {
    const instruction& w = l_.body[j];
    if (w.store < 0) return false;
    const view& y = l_.out[std::size_t(w.store)];
    if (y.type != w.type || (w.type != dtype::f32 && w.type != dtype::bf16) || ((l_.accumulate >> w.store) & 1u) != 0) return false;
    for (std::size_t later = j + 1; later < l_.body.size(); ++later)
      for (int a = 0; a < l_.body[later].args; ++a) {
        const auto from = l_.body[later].arg[a];
        if (from >= 0 && from < max_inputs && l_.in[std::size_t(from)].data == y.data) return false;
      }
    return true;
  }

  void store(int output, std::int64_t first, std::int64_t n, const float* x) const {
    const view& y = l_.out[std::size_t(output)];
    if (((l_.accumulate >> output) & 1u) != 0) {
      slot sum;
      widen_run(y.data, y.type, first, 1, sum.at, n);
      for (std::int64_t e = 0; e < n; ++e) sum.at[e] += x[e];
      narrow_run(sum.at, y.data, y.type, first, n);
    } else {
      narrow_run(x, y.data, y.type, first, n);
    }
  }

  /// Returns operand k's rows. They are read in place if they are contiguous and every reader accepts their format; otherwise they are converted to
  /// f32 in the buffer, a repeated row only once. The range comes by reference: a copy would load several members at once and wait as described at value_rows.
  row_view fetch(std::size_t k, const body_range& r, place at, std::int64_t width, float* buffer) const {
    const view& x = l_.in[k];
    k -= own_;
    std::int64_t rows = r.rows;
    if (axes_.one_run(k)) return rows_at(k, r.first, r.step, rows, r.n, width, buffer);
    const extents& strides = axes_.strides[k];
    const std::int64_t inner = axes_.inner(), along = strides[std::size_t(axes_.rank - 1)], room = inner - at.col;
    // The range lies within one row of the inner axis, or its rows are rows of a matrix.
    std::int64_t apart = r.step * along;
    bool even = r.rows == 1 || (r.rows - 1) * r.step + r.n <= room;
    if (!even && axes_.rank == 2 && (r.step == inner || r.step % inner == 0)) {
      apart = r.step == inner ? strides[0] : strides[0] * (r.step / inner);
      even = true;
    }
    if (even && apart == 0) rows = 1;
    if (along == 1 && even && r.n <= room) {
      std::int64_t start = (axes_.rank == 2 ? at.row * strides[0] : 0) + at.col;
      if (axes_.rank > 2) axes_.runs(k, r.first, 1, [&](std::int64_t offset, std::int64_t, std::int64_t, std::int64_t) { start = offset; });
      return rows_at(k, start, apart, rows, r.n, width, buffer);
    }
    for (std::int64_t m = 0; m < rows; ++m)
      axes_.runs(k, r.first + m * r.step, r.n, [&](std::int64_t offset, std::int64_t stride, std::int64_t to, std::int64_t length) {
        widen_run(x.data, x.type, offset, stride, buffer + m * width + to, length);
      });
    return {buffer, rows == 1 ? 0 : width};
  }

  /// Returns contiguous rows of operand k, which lie `apart` elements from one another.
  row_view rows_at(std::size_t k, std::int64_t start, std::int64_t apart, std::int64_t rows, std::int64_t n, std::int64_t width,
                   float* buffer) const {
    const view& x = l_.in[own_ + k];
    if (x.type == dtype::f32) return {x.as<const float>() + start, apart};
    if (x.type == dtype::bf16 && ((widened_ >> (own_ + k)) & 1u) == 0) return {x.as<const bfloat16>() + start, apart, dtype::bf16};
    for (std::int64_t m = 0; m < rows; ++m) widen_run(x.data, x.type, start + m * apart, 1, buffer + m * width, n);
    return {buffer, rows == 1 ? 0 : width};
  }

  const launch& l_;
  std::size_t own_;
  merged_axes axes_;
  std::uint32_t used_ = 0, widened_ = 0;  // operands: read by an instruction; read by one that takes only f32
  std::uint32_t read_wide_ = 0;           // instructions whose result is read by one that takes only f32
  bool product_wide_ = false;             // some instruction reads the host's result as f32
  bool at_once_[max_micro_ops] = {};
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
