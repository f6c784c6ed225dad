#pragma once
/// The interpreter of fused element-wise bodies, on blocks of 1024 elements: what an element-wise step and a matmul's epilogue run.
///
/// Bound by bytes for plain arithmetic. A block of every operand stays in L1 while all instructions pass over it; operands in f32 that lie in one
/// run are used in place, results go straight to an f32 output.
#include <isotope/kernels/cpu/block_access.hpp>
#include <isotope/kernels/cpu/parallel.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

class fused_body {
 public:
  static constexpr std::int64_t block = 1024;

  /// The body of l. Its operands, which follow the host node's `own` ones, and its outputs have the dims of output 0.
  explicit fused_body(const launch& l, std::size_t own = 0) : l_(l), own_(own), axes_(l.out[0].dims, l.in.subspan(own)) {
    for (const auto& i : l.body)
      for (int a = 0; a < i.args; ++a)
        if (i.arg[a] >= 0 && i.arg[a] < max_inputs) used_ |= 1u << i.arg[a];
    for (std::size_t j = 0; j < l.body.size(); ++j) direct_[j] = writes_in_place(j);
  }

  /// Runs the body on the elements [first, first + n), n <= block. `product` holds the host node's values of that range.
  void run(std::int64_t first, std::int64_t n, const float* product) const {
    slot buffer[max_inputs + max_micros];
    const float* values[max_inputs + max_micros];
    for (std::size_t k = own_; k < l_.in.size(); ++k)
      if ((used_ >> k) & 1u) values[k] = fetch(k, first, n, buffer[k].at);
    for (std::size_t j = 0; j < l_.body.size(); ++j) {
      const instruction& i = l_.body[j];
      const void* args[3] = {};
      for (int a = 0; a < i.args; ++a) args[a] = i.arg[a] == isotope::product ? product : values[i.arg[a]];
      float* to = direct_[j] ? l_.out[std::size_t(i.store)].as<float>() + first : buffer[max_inputs + j].at;
      i.run(args, to, n, i.scalar);
      if (i.type == dtype::bf16) math::map(n, to, [](float x) ISOTOPE_INLINE_LAMBDA { return float(bfloat16(x)); }, to);
      if (i.type == dtype::f16) math::map(n, to, [](float x) ISOTOPE_INLINE_LAMBDA { return float(float16(x)); }, to);
      values[max_inputs + j] = to;
    }
    // Only now: an output may lie where an operand lies that was read in place.
    for (std::size_t j = 0; j < l_.body.size(); ++j)
      if (l_.body[j].store >= 0 && !direct_[j]) store(l_.body[j].store, first, n, values[max_inputs + j]);
  }

 private:
  struct alignas(64) slot {
    float at[block + 16];  // 4 KB and a line: buffers that lie 4 KB apart would stall one another
  };
  /// Whether instruction j may write to its output at once: f32, and nobody reads an input that lies there afterwards.
  bool writes_in_place(std::size_t j) const {
    const instruction& w = l_.body[j];
    if (w.store < 0) return false;
    const view& y = l_.out[std::size_t(w.store)];
    if (y.type != dtype::f32 || ((l_.accumulate >> w.store) & 1u) != 0) return false;
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

  const float* fetch(std::size_t k, std::int64_t first, std::int64_t n, float* buffer) const {
    const view& x = l_.in[k];
    k -= own_;
    if (x.type == dtype::f32) {
      if (axes_.one_run(k)) return x.as<const float>() + first;
      const auto last = std::size_t(axes_.rank - 1);
      if (axes_.strides[k][last] == 1 && first / axes_.inner() == (first + n - 1) / axes_.inner()) {
        const float* run = nullptr;
        axes_.runs(k, first, n, [&](std::int64_t offset, std::int64_t, std::int64_t, std::int64_t) { run = x.as<const float>() + offset; });
        return run;
      }
    }
    axes_.runs(k, first, n, [&](std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t length) {
      widen_run(x.data, x.type, offset, stride, buffer + at, length);
    });
    return buffer;
  }

  const launch& l_;
  std::size_t own_;
  merged_axes axes_;
  std::uint32_t used_ = 0;
  bool direct_[max_micros] = {};
};

}  // namespace portable
}  // namespace arch
}  // namespace isotope::cpu
