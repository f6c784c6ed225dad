#pragma once
/// Attention on any device: attention.comp.
#include <isotope/kernels/vulkan/attention_heads.hpp>
#include <isotope/shaders/attention.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::attention, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::forward(l);
    if (h.empty()) return;
    const auto t = tiles(h, l.device->shared_bytes);
    auto reads = h.reads(l);
    r.add(shaders::attention, h.specialization(t.invocations, l.device->subgroup, h.aligned(4), {t.queries, t.keys, t.pieces}), h.push(),
          cover(h.B * h.H * ((h.S + t.queries - 1) / t.queries), 1), std::move(reads), {l.out[0], l.out[1]});
  }

 private:
  /// 32 keys; as many queries as fit and exist: 64 with 128 invocations halve the reads of keys and values.
  static attention_tiles tiles(const attention_heads& h, std::int64_t shared) {
    constexpr std::int64_t keys = 32, room_for_maxima = 4 * attention_tiles::across;
    const std::int64_t pieces = attention_tiles::chunk(h.D) / 4;
    const auto fits = [&](std::int64_t queries) {
      return queries * (attention_tiles::row_bytes(attention_tiles::padded(h.D)) + attention_tiles::row_bytes(keys) + room_for_maxima) +
                 keys * attention_tiles::row_bytes(4 * pieces) <=
             shared;
    };
    std::int64_t queries = 64;
    while (queries > attention_tiles::across && (!fits(queries) || queries >= 2 * h.S)) queries /= 2;
    return {queries, keys, queries == 64 ? 128 : 64, pieces};
  }
};

}  // namespace isotope::vulkan
