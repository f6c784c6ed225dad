#pragma once
/// Attention to cached keys and values: a workgroup for each head of a query, or several for long caches, whose parts a second dispatch adds.
#include <isotope/backend/vulkan/table.hpp>
#include <isotope/kernels/vulkan/attention/cached.hpp>
#include <isotope/kernels/vulkan/portable/cache_append.hpp>
#include <isotope/kernels/vulkan/reference/attention_cached.hpp>
#include <isotope/shaders/attention_cached.hpp>
#include <isotope/shaders/attention_cached_merge.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::attention_cached, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const op::cache_sizes size(s.in[1]);
    return cached_parts(size.T, cached_parts::planned).scratch(s.in[0][0] * s.constants<op::attention_cached>().heads, size.D);
  }

  static void record(const launch& l, recording& r) {
    if (!record(l, nullptr, r))
      portable::fall_through<op::attention_cached, P>(l, r, "attention_cached: heads are too large, or there are no keys");
  }
  /// Records what appends the key and value of the only query, and its attention, in one dispatch, which saves a barrier. Returns false if `first` is no such step.
  static bool record_after(const earlier_step& before, const launch& l, recording& r) {
    const launch& append = before.given;
    if (!before.is<op::cache_append, kernel<op::cache_append, P, kernels::portable>>() || l.in[0].dims[0] != 1 ||
        !same(append.out[0], l.in[1]) || !same(append.out[1], l.in[2]) || !same(append.in[4], l.in[3]) || !same(append.in[5], l.in[4]))
      return false;
    for (std::size_t k = 2; k < append.in.size(); ++k)
      if (range(append.in[k]).overlaps(l.out[0])) return false;
    enter_set(r, kernels::portable::name);
    return record(l, &append, r);
  }

 private:
  static bool same(const view& a, const view& b) { return a.at == b.at && a.dims == b.dims && a.type == b.type; }

  /// @param append  the step of cache_append that this dispatch does, too; null: none
  static bool record(const launch& l, const launch* append, recording& r) {
    using portable::word;
    const auto c = l.constants<op::attention_cached>();
    const view &q = l.in[0], &keys = l.in[1], &values = l.in[2], &sequence = l.in[3], &position = l.in[4], &y = l.out[0];
    const op::cache_sizes size(keys.dims);
    const std::int64_t N = q.dims[0], heads = N * c.heads;
    if (heads == 0) return true;
    const std::int64_t whole = 16 / size_of(keys.type), workgroup = portable::workgroup(*l.device, 256);
    std::vector<range> reads{q, keys, values, sequence, position};
    bool wide = size.D % whole == 0 && keys.at % 16 == 0 && values.at % 16 == 0;
    if (append != nullptr) {
      wide = wide && append->in[2].at % 16 == 0 && append->in[3].at % 16 == 0;
      reads.insert(reads.end(), {append->in[2], append->in[3]});
    }
    const std::int64_t piece = wide ? whole : 4;
    if (size.B * size.T == 0 || portable::divide_up(size.D, piece) > workgroup) return false;
    const auto* variant = choose_kernel(cached_variants, cached_problem{size.T, heads, size.D, l.scratch_bytes}, r.considered()).variant;
    const cached_parts parts = variant->parts(size.T);
    const range sums(l.scratch, 4 * heads * parts.count * size.D);
    const range totals(l.scratch + std::uint64_t(sums.bytes()), 8 * heads * parts.count);
    const attention_cached_push push{q.at,
                                     keys.at,
                                     values.at,
                                     sequence.at,
                                     position.at,
                                     y.at,
                                     sums.first,
                                     totals.first,
                                     append == nullptr ? 0 : append->in[2].at,
                                     append == nullptr ? 0 : append->in[3].at,
                                     word(q.strides[0]),
                                     word(y.strides[0]),
                                     word(N),
                                     word(size.B),
                                     word(c.heads),
                                     word(size.G),
                                     word(size.T),
                                     word(c.window),
                                     float(c.scale)};
    const auto shared = [&](std::int64_t invocations) {
      return constants{word(invocations), l.device->subgroup}.add(q.type).add(keys.type).add(size.D).add(parts.count).add(parts.keys);
    };
    const bool several = parts.count > 1;
    std::vector<range> writes{y};
    if (several) writes = {sums, totals};
    if (append != nullptr) writes.insert(writes.end(), {keys, values});
    r.add(shaders::attention_cached, shared(workgroup).add(piece).add(wide).add(q.type == dtype::f32).add(append != nullptr), push,
          cover(heads * parts.count, 1), std::move(reads), std::move(writes))
        .subgroup = l.device->subgroup;
    if (several)
      r.add(shaders::attention_cached_merge, shared(64), push, per_invocation(heads * size.D, 64), {sums, totals, sequence, position}, {y});
    return true;
  }
};

}  // namespace isotope::vulkan
