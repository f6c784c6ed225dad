#pragma once
/// The variants of attention and of its gradient: what rules one out, and how long it takes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <isotope/kernels/cuda/attention/heads.hpp>

namespace isotope::cuda {

/// The algorithms: products of warpgroups, of tensor cores by warps, of large register tiles in f32, and of rows in shared memory.
enum class attention_kind : std::uint8_t { warpgroups, tensor_cores, f32_tiles, rows };

/// What a choice depends on. The number of sequences only scales predicted times, and so it does not change the choice: the bits of a sequence do not depend on
/// the others.
struct attention_work {
  double flops = 0;                            // of all products that causal attention and windows need
  std::int64_t S = 1, T = 1, D = 1;            // queries, keys and elements of a head
  std::array<std::string_view, 4> refusals{};  // by kind: why it does not take such operands; empty: it does
  const device_limits* device = nullptr;

  static attention_work of(const attention_heads& h, const launch& l, bool gradient) {
    const auto pairs = op::attention_range(l.constants<op::attention>(), h.S, h.T).pairs();
    attention_work w;
    w.flops = (gradient ? 14 : 4) * double(h.B * h.H * h.D) * double(std::max<std::int64_t>(pairs, 1));
    w.S = std::max<std::int64_t>(h.S, 1), w.T = std::max<std::int64_t>(h.T, 1), w.D = h.D;
    w.device = l.device;
    w.refusal(attention_kind::f32_tiles) = !h.all_of(dtype::f32) ? "it multiplies only f32"
                                           : !h.aligned(4)       ? "rows do not start at multiples of 16 bytes"
                                                                 : "";
    return w;
  }
  std::string_view& refusal(attention_kind k) { return refusals[std::size_t(k)]; }
  constexpr std::string_view refusal(attention_kind k) const { return refusals[std::size_t(k)]; }
};

struct attention_cost {
  double seconds = 0;
};

/// One launch of a variant: functions without and with dropout, and the blocks.
struct attention_blocks {
  std::string_view plain, dropout;
  std::int64_t own;  // rows of a head that a block owns
  std::int64_t threads, shared_bytes;

  std::string_view function(const attention_heads& h) const { return h.dropped() ? dropout : plain; }
};

/// @tparam Gradient  of the gradient: `first` makes dq, `second` dk and dv. Forward: there is no `second`.
template <bool Gradient> struct attention_variant {
  attention_kind kind;
  std::int64_t D;  // the largest heads
  attention_blocks first, second;
  double speed;  // TFLOP/s of an H200

  constexpr std::string_view unfit(const attention_work& w) const {
    if (const auto why = w.refusal(kind); !why.empty()) return why;
    if (kind == attention_kind::warpgroups ? w.D != D : w.D > D) return "it is for heads of another size";
    if (std::max(first.shared_bytes, second.shared_bytes) > w.device->shared_bytes) return "the device has too little shared memory";
    return {};
  }
  /// Blocks compute whole steps of rows and keys. Of the variants for wider heads the narrowest is the fastest: what lies beyond a head counts a tenth, which only
  /// orders them.
  constexpr attention_cost cost_of(const attention_work& w) const {
    const std::int64_t step = kind == attention_kind::rows ? 32 : 64;
    // Whole tiles are counted. NOLINTNEXTLINE(bugprone-integer-division)
    const auto whole = [&](std::int64_t n) { return double((n + step - 1) / step * step) / double(n); };
    const double wide = (double(w.D) + 0.1 * double(D - w.D)) / double(w.D);
    return {w.flops * whole(w.S) * whole(w.T) * wide / (speed * 1e12 * w.device->multiprocessors / 132)};
  }
  std::string name(const attention_cost&) const {
    constexpr std::string_view names[] = {"warpgroups", "tensor cores", "f32 tiles", "rows"};
    return std::string(Gradient ? "gradient of attention: " : "attention: ") + std::string(names[std::size_t(kind)]) + ", heads of " +
           std::to_string(D);
  }
};

/// The variants of two lists.
template <class V, std::size_t A, std::size_t B> constexpr std::array<V, A + B> both(const std::array<V, A>& a, const std::array<V, B>& b) {
  std::array<V, A + B> all{};
  std::copy(a.begin(), a.end(), all.begin());
  std::copy(b.begin(), b.end(), all.begin() + A);
  return all;
}

}  // namespace isotope::cuda
