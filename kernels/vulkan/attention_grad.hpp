#pragma once
/// The gradient of attention on any device: row sums of dy y, then attention_grad_keys.comp and attention_grad_queries.comp, which evaluate
/// each score twice but need no atomics.
#include <isotope/kernels/vulkan/attention_heads.hpp>
#include <isotope/shaders/attention_delta.hpp>
#include <isotope/shaders/attention_grad_keys.hpp>
#include <isotope/shaders/attention_grad_queries.hpp>

namespace isotope::vulkan {

/// delta (B,H,S) f32 in scratch memory.
struct attention_delta {
  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * s.in[0][0] * s.attr->i[0] * s.in[0][1]; }

  static range written(const attention_heads& h) { return {h.delta, 4 * h.rows()}; }
  static void record(const attention_heads& h, const launch& l, recording& r) {
    constexpr std::int64_t invocations = 128, rows = invocations / attention_tiles::across;
    const auto n = std::size_t(op::attention_shape::operands(*l.attr));
    r.add(shaders::attention_delta, h.specialization(invocations, l.device->subgroup, h.aligned(4), {32, 32, 8}), h.push(),
          cover(h.rows(), rows), {l.in[n], l.in[n + 2]}, {written(h)});
  }
};

template <class P> struct kernel<op::attention_grad, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_delta::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    if (h.B * h.G * h.D * (h.S + h.T) == 0) return;
    if (h.rows() > 0) attention_delta::record(h, l, r);
    const auto operands = std::size_t(op::attention_shape::operands(*l.attr));
    auto reads = h.reads(l);
    reads.insert(reads.end(), {l.in[operands + 1], l.in[operands + 2], attention_delta::written(h)});
    const bool wide = h.aligned(4);
    if (h.T > 0) {
      const auto t = keys_tiles(h, l.device->shared_bytes);
      r.add(shaders::attention_grad_keys, h.specialization(t.invocations, l.device->subgroup, wide, {t.queries, t.keys, t.pieces}),
            h.push(), cover(h.B * h.G * ((h.T + t.keys - 1) / t.keys), 1), reads,
            h.packed ? std::vector<range>{l.out[0]} : std::vector<range>{l.out[1], l.out[2]});
    }
    if (h.S > 0) {
      const auto t = queries_tiles(h, l.device->shared_bytes);
      r.add(shaders::attention_grad_queries, h.specialization(t.invocations, l.device->subgroup, wide, {t.queries, t.keys, t.pieces}),
            h.push(), cover(h.B * h.H * ((h.S + t.queries - 1) / t.queries), 1), reads, {l.out[0]});
    }
  }

 private:
  /// 32 queries against as many keys as fit with their values.
  static attention_tiles keys_tiles(const attention_heads& h, std::int64_t shared) {
    constexpr std::int64_t queries = 32;
    const std::int64_t pieces = attention_tiles::chunk(h.D) / 4;
    std::int64_t keys = 32;
    const auto bytes = [&] {
      return keys * (2 * attention_tiles::row_bytes(attention_tiles::padded(h.D)) + attention_tiles::row_bytes(queries)) +
             queries * attention_tiles::row_bytes(4 * pieces);
    };
    while (keys > attention_tiles::across && bytes() > shared) keys /= 2;
    return {queries, keys, 64, pieces};
  }
  /// 32 keys against as many queries as fit with their dy.
  static attention_tiles queries_tiles(const attention_heads& h, std::int64_t shared) {
    const auto t = keys_tiles(h, shared);
    return {t.keys, t.queries, t.invocations, t.pieces};
  }
};

}  // namespace isotope::vulkan
