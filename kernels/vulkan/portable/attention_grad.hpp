#pragma once
/// The gradient of attention on any device: row sums of dy y, then attention_grad_keys.comp and attention_grad_queries.comp, which evaluate each
/// score twice but need no atomics.
#include <isotope/kernels/vulkan/attention/tiles.hpp>
#include <isotope/shaders/attention_delta.hpp>
#include <isotope/shaders/attention_grad_keys.hpp>
#include <isotope/shaders/attention_grad_queries.hpp>

namespace isotope::vulkan {

/// delta (B,H,S) f32 in scratch memory.
struct attention_delta {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return 4 * s.in[0][0] * s.constants<op::attention_grad>().heads * s.in[0][1];
  }

  static range written(const attention_heads& h) { return {h.delta, 4 * h.rows()}; }
  static void record(const attention_heads& h, const launch& l, recording& r) {
    constexpr std::int64_t invocations = 128, rows = invocations / 8;
    const auto n = std::size_t(op::attention_shape::operands(l.constants<op::attention>()));
    r.add(shaders::attention_delta, h.specialization(invocations, l.device->subgroup, h.aligned(4), {}), h.push(), cover(h.rows(), rows),
          {l.in[n], l.in[n + 2]}, {written(h)});
  }
};

inline std::vector<range> attention_grad_reads(const attention_heads& h, const launch& l) {
  const auto n = std::size_t(op::attention_shape::operands(l.constants<op::attention>()));
  auto r = h.reads(l);
  r.insert(r.end(), {l.in[n + 1], l.in[n + 2], attention_delta::written(h)});
  return r;
}
/// Returns the ranges of dk and dv.
inline std::vector<range> attention_grad_keys_written(const attention_heads& h, const launch& l) {
  return h.packed ? std::vector<range>{l.out[0]} : std::vector<range>{l.out[1], l.out[2]};
}

struct attention_grad_portable {
  static void record_keys(const attention_heads& h, const attention_tiles& t, const launch& l, recording& r) {
    r.add(shaders::attention_grad_keys, t.specialization(h, l), h.push(), cover(h.B * h.G * ((h.T + t.keys - 1) / t.keys), 1),
          attention_grad_reads(h, l), attention_grad_keys_written(h, l));
  }
  static void record_queries(const attention_heads& h, const attention_tiles& t, const launch& l, recording& r) {
    r.add(shaders::attention_grad_queries, t.specialization(h, l), h.push(), cover(h.B * h.H * ((h.S + t.queries - 1) / t.queries), 1),
          attention_grad_reads(h, l), {l.out[0]});
  }
};

template <class P> struct kernel<op::attention_grad, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_delta::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    if (h.B * h.G * h.D * (h.S + h.T) == 0) return;
    if (h.rows() > 0) attention_delta::record(h, l, r);
    if (h.T > 0) attention_grad_portable::record_keys(h, tiles<attention_part::keys>(h, l, r), l, r);
    if (h.S > 0) attention_grad_portable::record_queries(h, tiles<attention_part::queries>(h, l, r), l, r);
  }

 private:
  template <attention_part Part> static const attention_tiles& tiles(const attention_heads& h, const launch& l, recording& r) {
    return tiles_of<Part>(attention_work::of(h, l, Part), r.considered());
  }
};

}  // namespace isotope::vulkan
