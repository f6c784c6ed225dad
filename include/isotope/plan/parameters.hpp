#pragma once
/// Gathers parameters into one contiguous region: by learning rate, decaying before not decaying, by path.
#include <cstdint>
#include <string_view>
#include <vector>

#include "../core/tape.hpp"
#include "options.hpp"

namespace isotope {

/// Parameters start at multiples of 128 elements: 256-byte blocks in bf16, and the same element offsets in every region.
inline constexpr std::int64_t param_alignment = 128;

namespace plan_detail {

constexpr std::int64_t aligned(std::int64_t elements) { return (elements + param_alignment - 1) / param_alignment * param_alignment; }

/// Compares paths as people do: digits as numbers (h.2 before h.10), everything else by character.
constexpr bool path_before(std::string_view a, std::string_view b) {
  const auto digit = [](std::string_view s, std::size_t i) { return i < s.size() && s[i] >= '0' && s[i] <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a, i) && digit(b, j)) {
      std::uint64_t x = 0, y = 0;
      while (digit(a, i)) x = x * 10 + std::uint64_t(a[i++] - '0');
      while (digit(b, j)) y = y * 10 + std::uint64_t(b[j++] - '0');
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return i == a.size() && j < b.size();
}
/// Orders parameters by path. Trace order would not do: C++ leaves the evaluation order of a call's arguments open, and compilers use that freedom.
constexpr void sort_params(trace& g) {
  std::vector<std::int32_t> index;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    std::size_t at = index.size();
    index.push_back(0);
    for (; at > 0 && path_before(g.params[i].path.view(), g.params[std::size_t(index[at - 1])].path.view()); --at)
      index[at] = index[at - 1];
    index[at] = std::int32_t(i);
  }
  std::vector<parameter> sorted;
  sorted.reserve(index.size());
  for (auto i : index) sorted.push_back(g.params[std::size_t(i)]);
  g.params = static_cast<std::vector<parameter>&&>(sorted);
}

/// Parameters whose gradients travel between devices together: elements [first, first + elements) of the regions of parameters and gradients, of one learning rate.
/// Each data index owns as many of them.
struct gradient_bucket {
  std::int64_t first = 0, elements = 0;
  double scale = 1;  // on the learning rate
  bool decay = false;
  bool divided = false;  // between the devices of a tensor group
};
/// The parameters of one learning rate: elements [first, decayed) decay, [decayed, end) do not.
struct rate_group {
  double scale = 1;
  std::int64_t first = 0, decayed = 0, end = 0;
};
struct param_order {
  std::vector<std::int32_t> order;  // indices into trace::params: by learning rate, decaying before not decaying, by path; frozen ones last
  std::vector<std::int64_t> offset;  // in elements, by index into trace::params
  std::vector<rate_group> rates;
  std::vector<gradient_bucket> buckets;  // of a mesh: all trained parameters, in ascending order
  std::int64_t trained = 0, total = 0;
};
/// A parameter of a mesh joins the last bucket if that is of its kind and not full. With data parallelism a bucket ends where each data index gets as many blocks.
constexpr void put_in_bucket(const trace& g, param_order& r, const parameter& p, std::int64_t elements) {
  const bool divided = p.split.divides(), replicated = g.mesh.data > 1;
  const std::int64_t full = replicated && g.bucket_bytes > 0 ? g.bucket_bytes / size_of(accum_of(g.program)) : max_elements;
  const std::int64_t unit = param_alignment * g.mesh.data;
  const bool joins = !r.buckets.empty() && r.buckets.back().scale == p.rate_scale && r.buckets.back().decay == p.decay &&
                     r.buckets.back().divided == divided && r.buckets.back().elements < full;
  if (!joins) r.buckets.push_back({r.total, 0, p.rate_scale, p.decay, divided});
  auto& last = r.buckets.back();
  r.total += elements;
  last.elements = r.total - last.first;
  if (last.elements >= full && last.elements % unit != 0) r.total += unit - last.elements % unit;
  last.elements = r.total - last.first;
}
/// Ends the last bucket.
constexpr void end_bucket(const trace& g, param_order& r) {
  const std::int64_t unit = param_alignment * g.mesh.data;
  if (r.buckets.empty() || r.buckets.back().elements % unit == 0) return;
  r.total += unit - r.buckets.back().elements % unit;
  r.buckets.back().elements = r.total - r.buckets.back().first;
}
/// Of the parameters of a learning rate, those that decay come first; among these and among the others, those that the devices of a tensor group divide.
constexpr param_order arrange(const trace& g) {
  param_order r;
  r.offset.resize(g.params.size(), 0);
  const auto append_these = [&](auto&& chosen) {
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      const auto& p = g.params[i];
      if (!chosen(p) || g.values[std::size_t(p.value)].base >= 0) continue;
      r.order.push_back(std::int32_t(i));
      r.offset[i] = r.total;
      const std::int64_t elements = aligned(g.values[std::size_t(p.value)].dims.count());
      if (g.mesh.single() || !p.trainable) r.total += elements;
      else put_in_bucket(g, r, p, elements);
    }
    end_bucket(g, r);
  };
  const auto append = [&](auto&& chosen) {
    if (g.mesh.tensor > 1) append_these([&](const parameter& q) { return chosen(q) && q.split.divides(); });
    append_these([&](const parameter& q) { return chosen(q) && !(g.mesh.tensor > 1 && q.split.divides()); });
  };
  for (const auto& p : g.params) {
    bool known = !p.trainable;
    for (const auto& x : r.rates) known = known || x.scale == p.rate_scale;
    if (known) continue;
    rate_group x{p.rate_scale, r.total, 0, 0};
    append([&](const parameter& q) { return q.trainable && q.decay && q.rate_scale == x.scale; });
    x.decayed = r.total;
    append([&](const parameter& q) { return q.trainable && !q.decay && q.rate_scale == x.scale; });
    x.end = r.total;
    r.rates.push_back(x);
  }
  r.trained = r.total;
  append([](const parameter& q) { return !q.trainable; });
  return r;
}
constexpr void rebase(trace& g, std::int32_t v, std::int32_t region, std::int64_t offset) {
  value& x = g.values[std::size_t(v)];
  x.base = region;
  x.offset = offset;
}
/// Elements that a parameter takes in its region; bytes, where they are in blocks.
constexpr std::int64_t room_of(const value& v) {
  return aligned(in_blocks(v.type) ? (quantized::bytes_of(v.type, v.dims, v.strides) + 255) / 256 * 256 : v.dims.count());
}
/// Puts the parameters of one format into a region of their own.
constexpr void gather_stored(trace& g, dtype type) {
  std::int64_t total = 0;
  const auto end_of = [&](const parameter& p) { return room_of(g.values[std::size_t(p.value)]); };
  for (const auto& p : g.params)
    if (g.values[std::size_t(p.value)].type == type) total += end_of(p);
  if (total == 0) return;
  const auto region = g.add_value({total}, type, value_kind::param);
  std::int64_t at = 0;
  for (const auto& p : g.params)
    if (g.values[std::size_t(p.value)].type == type) {
      rebase(g, p.value, region, at);
      at += end_of(p);
    }
}
constexpr std::int32_t part_of(trace& g, std::int32_t region, std::int64_t first, const shape& dims) {
  const auto v = g.add_value(dims, g.values[std::size_t(region)].type, g.values[std::size_t(region)].kind);
  rebase(g, v, region, first);
  return v;
}

}  // namespace plan_detail

/// Regroups parameters before differentiation; which values need a gradient follows from what is trained.
constexpr void regroup(tape& t, grouping group) {
  if (group == nullptr) return;
  for (auto& p : t.g.params) {
    value& v = t.g.values[std::size_t(p.value)];
    const auto r = group(p.path.view(), v.dims, {p.decay, p.trainable, p.rate_scale, p.muon});
    if (!t.good_rate(p.path, r.rate_scale, place::current())) return;
    p.decay = r.decay;
    p.trainable = r.trainable;
    p.rate_scale = r.rate_scale;
    p.muon = r.muon;
    v.wants_gradient = r.trainable;
  }
  for (const auto& n : t.g.nodes) {
    bool wants = false;
    for (int k = 0; k < n.inputs(); ++k) wants = wants || t.g.values[std::size_t(n.in[std::size_t(k)])].wants_gradient;
    for (int k = 0; k < n.outputs(); ++k) {
      value& y = t.g.values[std::size_t(n.out[std::size_t(k)])];
      y.wants_gradient = wants && n.rules->gradient != nullptr && is_floating(y.type);
    }
  }
}

/// Makes parameters parts of one region, in the order of plan_detail::param_order. Parameters of another format than the program's (inference alone)
/// become parts of one region per format.
constexpr plan_detail::param_order gather_params(tape& t) {
  plan_detail::sort_params(t.g);
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::q8_0, dtype::q4_0})
    if (type != t.program()) plan_detail::gather_stored(t.g, type);
  const auto order = plan_detail::arrange(t.g);
  if (order.total == 0) return order;
  const auto region = t.g.add_value({order.total}, t.program(), value_kind::param);
  for (std::size_t i = 0; i < t.g.params.size(); ++i)
    if (t.g.values[std::size_t(t.g.params[i].value)].base < 0) plan_detail::rebase(t.g, t.g.params[i].value, region, order.offset[i]);
  return order;
}

}  // namespace isotope
