#pragma once
/// Attention over cached keys and values as kernels see it: which operands they take, their arguments, and the parts that positions are divided into.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include <isotope/kernels/cuda/attention/cached.h>
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/op/attention_cached.hpp>

namespace isotope::cuda {

struct cached_attention {
  /// Instances of a kernel for 4, 8, 16 and 32 threads of a position, of 16 bytes each, and for 1 and 4 query heads of a block.
  struct functions {
    std::array<std::array<std::string_view, 2>, 4> f32, bf16;
    std::array<std::string_view, 4> copies{};  // of by_copies()
  };
  static constexpr std::int64_t most_queries = 4, most_rows = 65535;

  const view &q, &keys, &values, &sequence, &position, &y;
  std::int64_t heads, window, N, G, T, D, lanes;
  double scale;

  explicit cached_attention(const launch& l)
      : q(l.in[0]), keys(l.in[1]), values(l.in[2]), sequence(l.in[3]), position(l.in[4]), y(l.out[0]) {
    const auto c = l.constants<op::attention_cached>();
    heads = c.heads, window = c.window, scale = c.scale;
    N = q.dims[0], G = keys.dims[1], T = keys.dims[2], D = keys.dims[3];
    lanes = lanes_of(D, size_of(keys.type));
  }

  /// Returns why the kernels do not take these operands; empty if they do.
  std::string_view obstacle() const {
    const dtype t = keys.type;
    constexpr std::int64_t most = std::int64_t(1) << 31;
    if ((t != dtype::f32 && t != dtype::bf16) || q.type != t || values.type != t || y.type != t) return "operands have different formats";
    const std::int64_t run = 16 / size_of(t);
    if (D % run != 0) return "rows of a head are not whole vectors";
    if (lanes > 32) return "a head is too large";
    if (q.strides[0] % run != 0 || q.at % 16 != 0 || keys.at % 16 != 0 || values.at % 16 != 0) return "rows are not aligned";
    if (T >= most / 2 || keys.dims[0] >= most || N > most_rows || heads * splits() >= most || N * heads >= most)
      return "a size is too large for 32 bits";
    return {};
  }
  std::string_view function(const functions& f) const {
    const std::size_t k = lanes <= 4 ? 0 : lanes <= 8 ? 1 : lanes <= 16 ? 2 : 3;
    if (by_copies() && !f.copies[k].empty()) return f.copies[k];
    return (keys.type == dtype::f32 ? f.f32 : f.bf16)[k][queries() == 1 ? 0 : 1];
  }
  /// Whether few blocks walk over rows and heads (cached_copies.cuh): where a block has one query head and all positions. Like splits, it does not depend on the
  /// number of rows.
  bool by_copies() const { return keys.type == dtype::bf16 && queries() == 1 && splits() == 1; }
  grid walking_blocks(std::int64_t multiprocessors) const {
    return per_block(std::min(N * G, gpu::copied_blocks * multiprocessors), gpu::copied_threads,
                     gpu::copied_fixed_bytes + lanes * gpu::copied_bytes_of_lane);
  }
  std::int64_t queries() const { return heads == G ? 1 : most_queries; }  // of a block
  std::int64_t splits() const { return splits_of(T, D, size_of(keys.type)); }
  grid blocks() const {
    grid g = per_block(G * query_blocks() * splits(), gpu::cached_threads);
    g.y = std::uint32_t(N);
    return g;
  }

  gpu::cached_heads arguments() const {
    gpu::cached_heads a{};
    a.q = q.at;
    a.y = y.at;
    a.keys = keys.at;
    a.values = values.at;
    a.sequence = sequence.at;
    a.position = position.at;
    a.q_stride = q.strides[0];
    a.y_stride = y.strides[0];
    a.N = N;
    a.B = keys.dims[0];
    a.T = T;
    a.G = std::int32_t(G);
    a.D = std::int32_t(D);
    a.repeats = std::int32_t(heads / G);
    a.blocks = std::int32_t(query_blocks());
    a.splits = std::int32_t(splits());
    a.window = std::int32_t(std::min(window, T));
    a.scale = float(scale * std::numbers::log2e);
    return a;
  }

  /// Threads that hold a position together: a power of two from 4 on.
  static constexpr std::int64_t lanes_of(std::int64_t D, std::int64_t bytes) {
    std::int64_t n = bytes == 4 ? 8 : 4;
    while (16 * n < D * bytes) n *= 2;
    return n;
  }
  /// Into how many parts the positions of a query are divided. It depends on the cache alone, so that results do not depend on the number of rows. A block alone
  /// is faster up to 1,024 positions: blocks of a cluster take 2 us to exchange their sums.
  static constexpr std::int64_t splits_of(std::int64_t T, std::int64_t D, std::int64_t bytes) {
    constexpr std::int64_t most = 8, long_from = 1025;
    const std::int64_t chunk = gpu::cached_threads / lanes_of(D, bytes);
    std::int64_t n = 1;
    while (T >= long_from && n < most && n * chunk < T) n *= 2;
    return n;
  }

 private:
  std::int64_t query_blocks() const { return (heads / G + queries() - 1) / queries(); }
};

}  // namespace isotope::cuda
