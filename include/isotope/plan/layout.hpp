#pragma once
/// Lays out memory: offsets in each region. Temporaries are placed by liveness, best fit, in blocks of 256 bytes.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "../core/target.hpp"
#include "../core/trace.hpp"

namespace isotope {

inline constexpr std::int64_t block_bytes = 256;

/// The byte offsets of root values in their regions and of scratch in the temporary region, and the kernel of each node.
struct memory_layout {
  std::vector<std::int64_t> at;       // by value; roots only
  std::vector<std::int64_t> scratch;  // by node; -1: none
  std::vector<std::int64_t> scratch_bytes;
  std::vector<std::int32_t> kernel;  // by node: index into the kernel table; -1: none (dead, view)
  std::array<std::int64_t, value_kinds> bytes{};
  std::int64_t lower_bound = 0;  // most bytes of temporaries alive at once
};

/// Returns the index of the kernel for an op in a table, or -1.
constexpr std::int32_t find_kernel(std::span<const kernel_info> table, const op_info* op, dtype precision) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].op == op && table[i].precision == precision) return std::int32_t(i);
  return -1;
}

namespace plan_detail {

constexpr std::int64_t blocks(std::int64_t bytes) { return (bytes + block_bytes - 1) / block_bytes; }

/// The free blocks of the temporary region, by address. The top grows if nothing fits.
class free_list {
 public:
  constexpr explicit free_list(std::int64_t chunk) : chunk_(chunk) {}
  constexpr std::int64_t peak() const { return peak_; }

  /// Whether n blocks fit into a hole.
  constexpr bool has(std::int64_t n) const {
    for (int k = 0; k < count_; ++k)
      if (f_[std::size_t(k)].n >= n && fits(f_[std::size_t(k)].at, n)) return true;
    return false;
  }
  constexpr std::int64_t take(std::int64_t n) {
    int best = -1;
    for (int k = 0; k < count_; ++k)
      if (f_[std::size_t(k)].n >= n && fits(f_[std::size_t(k)].at, n) && (best < 0 || f_[std::size_t(k)].n < f_[std::size_t(best)].n))
        best = k;
    if (best >= 0) {
      auto& b = f_[std::size_t(best)];
      const auto at = b.at;
      b.at += n;
      b.n -= n;
      if (b.n == 0) drop(best);
      return at;
    }
    std::int64_t at = top_;
    if (count_ > 0 && f_[std::size_t(count_ - 1)].at + f_[std::size_t(count_ - 1)].n == top_ && fits(f_[std::size_t(count_ - 1)].at, n)) {
      at = f_[std::size_t(count_ - 1)].at;  // the last hole touches the top and grows
      --count_;
    } else if (!fits(at, n)) {
      const auto boundary = (at / chunk_ + 1) * chunk_;
      give(at, boundary - at);
      at = boundary;
    }
    top_ = at + n;
    if (top_ > peak_) peak_ = top_;
    return at;
  }

  constexpr void give(std::int64_t at, std::int64_t n) {
    if (n == 0) return;
    int k = 0;
    while (k < count_ && f_[std::size_t(k)].at < at) ++k;
    const bool low = k > 0 && f_[std::size_t(k - 1)].at + f_[std::size_t(k - 1)].n == at;
    const bool high = k < count_ && f_[std::size_t(k)].at == at + n;
    if (low && high) {
      f_[std::size_t(k - 1)].n += n + f_[std::size_t(k)].n;
      drop(k);
    } else if (low) {
      f_[std::size_t(k - 1)].n += n;
    } else if (high) {
      f_[std::size_t(k)] = {at, n + f_[std::size_t(k)].n};
    } else if (count_ < int(f_.size())) {
      for (int j = count_++; j > k; --j) f_[std::size_t(j)] = f_[std::size_t(j - 1)];
      f_[std::size_t(k)] = {at, n};
    }  // a full list drops the hole: the arena may become larger than needed, never wrong
  }

 private:
  struct hole {
    std::int64_t at = 0, n = 0;
  };
  std::array<hole, 256> f_{};
  int count_ = 0;
  std::int64_t top_ = 0, peak_ = 0, chunk_;

  constexpr bool fits(std::int64_t at, std::int64_t n) const { return chunk_ == 0 || n > chunk_ || at / chunk_ == (at + n - 1) / chunk_; }
  constexpr void drop(int k) {
    for (--count_; k < count_; ++k) f_[std::size_t(k)] = f_[std::size_t(k + 1)];
  }
};

/// A free list whose blocks are used again only after `delay` more nodes, unless the region would grow otherwise. Devices that run nodes
/// at the same time wait for the last reader of the bytes that a node's output takes, so the last reader should be long done.
class delayed_free_list {
 public:
  constexpr delayed_free_list(std::int64_t chunk, std::int64_t delay) : free_(chunk), delay_(delay) {}
  constexpr std::int64_t peak() const { return free_.peak(); }
  constexpr void next_node() {
    ++node_;
    while (!waiting_.empty() && waiting_.front().node + delay_ < node_) release_oldest();
  }
  constexpr std::int64_t take(std::int64_t n) {
    while (!waiting_.empty() && !free_.has(n)) release_oldest();
    return free_.take(n);
  }
  constexpr void give(std::int64_t at, std::int64_t n) {
    if (delay_ == 0) free_.give(at, n);
    else waiting_.push_back({at, n, node_});
  }

 private:
  struct given {
    std::int64_t at, n, node;
  };
  free_list free_;
  std::int64_t delay_, node_ = 0;
  std::vector<given> waiting_;  // by age

  constexpr void release_oldest() {
    free_.give(waiting_.front().at, waiting_.front().n);
    waiting_.erase(waiting_.begin());
  }
};

constexpr std::int64_t value_blocks(const value& v) { return blocks(v.dims.count() * size_of(v.type)); }

/// Whether output `y` may take the bytes of input `x` of a node.
constexpr bool may_replace(const trace& g, std::int32_t x, std::int32_t y) {
  const value &a = g.values[std::size_t(x)], &b = g.values[std::size_t(y)];
  return a.base < 0 && a.kind == value_kind::temp && a.dims.count() == b.dims.count() && a.dims == b.dims && g.dense(x) &&
         size_of(a.type) == size_of(b.type);
}
}  // namespace plan_detail

/// Lays out a pruned, fused graph. Values that outlive a node keep their bytes until their last reader, through any view, is done, and then
/// for `delay` more nodes where that costs no memory.
constexpr memory_layout lay_out(const trace& g, std::span<const kernel_info> table, std::int64_t chunk_bytes, std::int64_t delay = 0) {
  using namespace plan_detail;
  memory_layout r;
  const std::size_t values = g.values.size(), nodes = g.nodes.size();
  r.at.resize(values, 0);
  r.scratch.resize(nodes, -1);
  r.scratch_bytes.resize(nodes, 0);
  r.kernel.resize(nodes, -1);
  std::vector<std::int32_t> roots(values, -1), last(values, -1);
  for (std::size_t v = 0; v < values; ++v) roots[v] = g.root(std::int32_t(v));
  for (std::size_t i = 0; i < nodes; ++i) {
    const node& n = g.nodes[i];
    if (n.dead || n.op->kind == op_kind::view) continue;
    r.kernel[i] = find_kernel(table, n.op, g.program);
    for (auto v : n.in)
      if (v >= 0) last[std::size_t(roots[std::size_t(v)])] = std::int32_t(i);
    for (auto v : n.out)
      if (v >= 0 && last[std::size_t(roots[std::size_t(v)])] < std::int32_t(i)) last[std::size_t(roots[std::size_t(v)])] = std::int32_t(i);
  }
  for (std::size_t v = 0; v < values; ++v) {
    const value& x = g.values[v];
    if (x.base >= 0 || x.kind == value_kind::temp) continue;
    auto& end = r.bytes[std::size_t(x.kind)];
    r.at[v] = end;
    end += value_blocks(x) * block_bytes;
  }
  delayed_free_list free(chunk_bytes / block_bytes, delay);
  std::vector<std::uint8_t> placed(values, 0);
  std::int64_t live = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const node& n = g.nodes[i];
    if (n.dead || n.op->kind == op_kind::view) continue;
    const kernel_info* kernel = r.kernel[i] < 0 ? nullptr : &table[std::size_t(r.kernel[i])];
    free.next_node();
    std::uint32_t taken = 0;
    for (int o = 0; o < n.outputs(); ++o) {
      const auto y = n.out[std::size_t(o)];
      const value& v = g.values[std::size_t(y)];
      if (const auto root = std::size_t(roots[std::size_t(y)]); v.base >= 0 && placed[root] == 0)
        if (const value& whole = g.values[root]; whole.kind == value_kind::temp && whole.producer < 0) {  // written in parts
          placed[root] = 1;
          r.at[root] = free.take(value_blocks(whole)) * block_bytes;
          live += value_blocks(whole);
        }
      if (v.base >= 0 || v.kind != value_kind::temp || placed[std::size_t(y)] != 0) continue;
      placed[std::size_t(y)] = 1;
      int donor = -1;
      if (kernel != nullptr && (o == 0 || (n.body_size > 0 && (n.summed < 0 || o + 1 < n.outputs()))))
        for (int k = 0; k < n.inputs() && donor < 0; ++k) {
          const auto x = n.in[std::size_t(k)];
          if (((kernel->inplace >> k) & 1) == 0 || ((taken >> k) & 1) != 0 || last[std::size_t(x)] != std::int32_t(i)) continue;
          if (n.body_size > 0 && k < n.op->host_operands(n.attr)) continue;  // a gemm's own operands stay readable
          int uses = 0;
          for (auto other : n.in) uses += other >= 0 && roots[std::size_t(other)] == x;
          if (uses == 1 && may_replace(g, x, y)) donor = k;
        }
      if (donor >= 0) {
        taken |= std::uint32_t(1) << donor;
        const auto x = std::size_t(n.in[std::size_t(donor)]);
        r.at[std::size_t(y)] = r.at[x];
        last[x] = -1;  // its bytes live on as y
      } else {
        r.at[std::size_t(y)] = free.take(value_blocks(v)) * block_bytes;
        live += value_blocks(v);
      }
    }
    std::int64_t workspace = 0;
    if (kernel != nullptr && kernel->scratch != nullptr) {
      std::array<shape, max_inputs> in{};
      std::array<shape, max_outputs> out{};
      for (int k = 0; k < n.inputs(); ++k) in[std::size_t(k)] = g.values[std::size_t(n.in[std::size_t(k)])].dims;
      for (int k = 0; k < n.outputs(); ++k) out[std::size_t(k)] = g.values[std::size_t(n.out[std::size_t(k)])].dims;
      r.scratch_bytes[i] =
          kernel->scratch({{in.data(), std::size_t(n.inputs())}, {out.data(), std::size_t(n.outputs())}, &n.attr, n.summed});
      workspace = blocks(r.scratch_bytes[i]);
    }
    const std::int64_t scratch_at = workspace > 0 ? free.take(workspace) : -1;
    if (workspace > 0) r.scratch[i] = scratch_at * block_bytes;
    if (live + workspace > r.lower_bound) r.lower_bound = live + workspace;
    if (workspace > 0) free.give(scratch_at, workspace);
    const auto release = [&](std::int32_t v) {
      if (v < 0) return;
      const auto root = std::size_t(roots[std::size_t(v)]);
      const value& x = g.values[root];
      if (x.kind != value_kind::temp || last[root] != std::int32_t(i)) return;
      last[root] = -1;
      live -= value_blocks(x);
      free.give(r.at[root] / block_bytes, value_blocks(x));
    };
    for (auto v : n.in) release(v);
    for (auto v : n.out) release(v);
  }
  r.bytes[std::size_t(value_kind::temp)] = free.peak() * block_bytes;
  r.lower_bound *= block_bytes;
  return r;
}

}  // namespace isotope
