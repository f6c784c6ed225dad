#pragma once
/// Divides attention of packed sequences into tasks, a head of a sequence each, so that its keys, values and tiles of scores stay in L2. Lengths take the
/// place of masks. The longest sequences come first, since a long task that starts last would keep the other threads waiting.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <isotope/kernels/cpu/attention/heads.hpp>
#include <isotope/op/attention_packed.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// Attention of packed sequences by the blocks of queries of a kernel for whole sequences.
///
/// @tparam Block  has slice_floats(D), the floats of scratch memory of one worker, and block_of(launch, heads, b, head, q0, slice), which computes the block of
///                queries from q0 on
template <class Block> class packed_attention {
 public:
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t H = s.constants<op::attention_packed>().heads, sequences = s.in[3][0] - 1;
    return order_bytes(sequences) + 4 * Block::slice_floats(s.in[0][1] / H) * smaller(sequences * H, max_workers);
  }
  static void run(const launch& l) {
    const auto c = l.constants<op::attention_packed>();
    const std::int64_t N = l.in[0].dims[0], D = l.in[0].dims[1] / c.heads, sequences = l.in[3].dims[0] - 1;
    const auto* starts = l.in[3].as<const std::int32_t>();
    const auto rows_of = [&](std::int64_t b) { return op::packed_rows::of(starts, b, N); };
    clear(l.out[0], 0, sequences > 0 ? rows_of(0).first : N);
    if (sequences > 0) clear(l.out[0], rows_of(sequences - 1).end, N);

    auto* const order = static_cast<std::int32_t*>(l.scratch);  // sequences that have rows, the longest first
    std::int64_t some = 0;
    double pairs = 0;
    for (std::int64_t b = 0; b < sequences; ++b)
      if (const auto n = double(rows_of(b).count()); n > 0) {
        order[some++] = std::int32_t(b);
        pairs += n * n;
      }
    std::sort(order, order + some, [&](std::int32_t a, std::int32_t b) {
      const std::int64_t more = rows_of(a).count() - rows_of(b).count();
      return more != 0 ? more > 0 : a < b;
    });
    auto* const slices = reinterpret_cast<float*>(static_cast<char*>(l.scratch) + order_bytes(sequences));
    const double nsec = double(c.heads) * pairs * (double(D) / 50.0 + 0.4) * (c.causal ? 0.6 : 1.0);
    for_uneven_tasks(l, some * c.heads, nsec, [&](std::int64_t t, int slice) {
      const one_sequence s(l, rows_of(order[t / c.heads]));
      const attention_heads h(s.step, {.heads = c.heads, .kv_heads = c.heads, .causal = c.causal, .scale = c.scale});
      for (std::int64_t q0 = 0; q0 < h.S; q0 += attention_heads::block)
        Block::block_of(s.step, h, 0, t % c.heads, q0, slices + slice * Block::slice_floats(D));
    });
  }

 private:
  static constexpr std::int64_t order_bytes(std::int64_t sequences) { return divide_up(4 * sequences, 64) * 64; }

  /// The rows of one sequence as a step of op::attention without the logs of its denominators.
  struct one_sequence {
    std::array<view, 3> in;
    std::array<view, 1> out;
    launch step;

    one_sequence(const launch& l, const op::packed_rows& rows) : step(l) {
      for (std::size_t k = 0; k < in.size(); ++k) in[k] = part(l.in[k], rows);
      out[0] = part(l.out[0], rows);
      step.in = in;
      step.out = out;
    }
    one_sequence(const one_sequence&) = delete;
    one_sequence& operator=(const one_sequence&) = delete;
    static view part(const view& x, const op::packed_rows& rows) {
      view y = x;
      y.data = static_cast<char*>(x.data) + rows.first * x.strides[0] * size_of(x.type);
      y.dims = {1, rows.count(), x.dims[1]};
      y.strides = {0, x.strides[0], x.strides[1]};
      return y;
    }
  };
  static void clear(const view& y, std::int64_t first, std::int64_t end) {
    for (std::int64_t n = first; n < end; ++n)
      std::memset(static_cast<char*>(y.data) + n * y.strides[0] * size_of(y.type), 0, std::size_t(y.dims[1] * size_of(y.type)));
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
