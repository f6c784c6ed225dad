#pragma once
/// A small encoder of few rows in bf16 as launches of native/encode_hopper.cu: a cluster of blocks has 16 or 24 rows and goes through all layers. Sums are in another order than those of
/// separate launches, and rows before a norm are not rounded, so results differ from theirs in roundings.
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <numbers>
#include <string_view>

#include <isotope/kernels/cuda/encode/encode.h>
#include <isotope/fatbins/encode_hopper.hpp>

#include "encoder_steps.hpp"

namespace isotope::cuda {

class small_encoder {
 public:
  /// What there are kernels for: columns, hidden values and heads.
  static constexpr std::int64_t columns = 384, hidden = 4 * columns, heads = columns / gpu::encode_head;
  static constexpr std::int64_t most_rows = gpu::encode_most_rows, most_clusters = gpu::encode_most_clusters,
                                most_groups = most_rows / gpu::encode_rows + 2;  // those of the last cluster may lie behind the last row
  /// Scratch memory: rows, heads, starts, and from zeros_at on what is 0 before the first run: counts, keys and sums.
  static constexpr std::int64_t rows_bytes = 2 * most_rows * columns, tiles = gpu::encode_most_layers * most_groups * heads,
                                heads_bytes = tiles * gpu::encode_head_tile_bytes, starts_bytes = 512, starts_at = rows_bytes + heads_bytes,
                                zeros_at = starts_at + starts_bytes, counts_bytes = 4 * most_clusters * gpu::encode_ranks,
                                keys_at = zeros_at + most_clusters * counts_bytes, keys_bytes = tiles * gpu::encode_key_tile_bytes,
                                sums_at = keys_at + keys_bytes, sums_bytes = 8 * gpu::encode_most_texts * most_clusters * columns,
                                scratch_bytes = sums_at + sums_bytes, zeros_bytes = scratch_bytes - zeros_at;
  static_assert(4 * (gpu::encode_most_texts + 1) <= starts_bytes && most_rows <= 16 * most_clusters);

  static constexpr std::string_view no_room = "the device has no room for a cluster of a small encoder";

  small_encoder(const plan_view& p, const region_addresses& base, const device_limits& device) : steps_(p, base), device_(device) {
    why_ = steps_.why();
    if (why_.empty()) why_ = refusal();
    if (why_.empty()) why_ = device_refusal(), device_refuses_ = !why_.empty();
  }
  /// Returns why the plan keeps its launches; empty if it does not.
  std::string_view why() const { return why_; }
  /// Whether it is a plan that its kernels take on other devices.
  bool device_refuses() const { return device_refuses_; }

  /// Clusters. One of 16 blocks finds room on every device with more multiprocessors than eight groups of 14 have.
  std::int64_t clusters() const { return (steps_.N + rows() - 1) / rows(); }
  /// Replaces the launches of the plan; `together`: the device has room for all clusters at once, so they share launches. What they pass on lies in `scratch`, memory of scratch_bytes, of
  /// which zeros_bytes from zeros_at on are 0 before the first run.
  void join(std::vector<dispatch>& all, std::uint64_t scratch, bool together = false) const {
    std::vector<dispatch> made;
    const int layers = int(steps_.layers.size()), stages = 2 * layers;
    if (clusters() == 1 || together) {
      for (int first = 0; first < stages; first += 2 * gpu::encode_most_layers)
        made.push_back(launch(scratch, first, std::min(stages, first + 2 * gpu::encode_most_layers), clusters() > 1));
    } else {
      for (int first = 0, end = 1; first < stages; first = end, end = std::min(stages, end + 2))
        made.push_back(launch(scratch, first, end, false));
    }
    if (clusters() > 1 && !together) made.push_back(pool(scratch));
    all = std::move(made);
  }

 private:
  encoder_steps steps_;
  const device_limits& device_;
  std::string_view why_;
  bool device_refuses_ = false;

  /// Rows of a cluster. Up to 112 have clusters of 16, of which seven find room at once on an H200 (bench/CUDA_INFERENCE.md).
  int rows() const {
    const std::string_view variant = device_.switches.variant;
    if (variant.starts_with("encode_16")) return 16;
    if (variant.starts_with("encode_24")) return 24;
    return steps_.N <= 112 ? 16 : 24;
  }
  std::string_view refusal() const {
    const encoder_steps& s = steps_;
    if (s.C != columns || s.F != hidden || s.H != heads)
      return "there are kernels of small encoders for 384 columns, 1536 hidden values and 12 heads";
    if (s.N > most_rows) return "a small encoder has at most 128 rows";
    if (s.starts.dims[0] - 1 > gpu::encode_most_texts) return "a small encoder has at most 64 texts";
    return {};
  }
  std::string_view device_refusal() const {
    constexpr std::int32_t least_multiprocessors = 8 * 14 + 1;
    if (!device_.hopper()) return "small encoders need Hopper's tensor cores";
    if (!fatbins::encode_hopper.there()) return "this build has no code for small encoders";
    const int bytes = gpu::encode_bytes(int(columns), int(hidden), rows());
    if (device_.shared_bytes < bytes || device_.multiprocessors < least_multiprocessors) return no_room;
    return {};
  }

  /// Boxes of 32 lines of K elements, in chunks of 32 elements: (32, lines, K / 32).
  static tensor_map lines_of(std::size_t offset, const view& weight) {
    const std::uint64_t K = std::uint64_t(weight.dims[0]), O = std::uint64_t(weight.dims[1]);
    tensor_map m = map_of(offset, weight);
    m.dims = {gpu::encode_lines, O, K / gpu::encode_lines};
    m.strides_bytes = {2 * K, 2 * gpu::encode_lines};
    m.box = {gpu::encode_lines, gpu::encode_lines, std::uint32_t(K) / gpu::encode_lines};
    return m;
  }
  /// Boxes of all lines of 32 elements, in two halves of them: (32, O / 2, 2).
  static tensor_map columns_of(std::size_t offset, const view& weight) {
    const std::uint64_t K = std::uint64_t(weight.dims[0]), O = std::uint64_t(weight.dims[1]);
    tensor_map m = map_of(offset, weight);
    m.dims = {K, O / 2, 2};
    m.strides_bytes = {2 * K, O * K};
    m.box = {gpu::encode_lines, std::uint32_t(O) / 2, 2};
    return m;
  }
  static tensor_map map_of(std::size_t offset, const view& weight) {
    tensor_map m;
    m.argument_offset = std::uint32_t(offset);
    m.address = weight.at;
    m.rank = 3;
    m.swizzle_bytes = 0;
    return m;
  }

  gpu::encode_arguments arguments(std::uint64_t scratch, int first, int end, bool together) const {
    const encoder_steps& s = steps_;
    gpu::encode_arguments a{};
    const auto word = [](std::int64_t n) { return std::int32_t(n); };
    a.words = s.tables[0].at, a.word_ids = s.ids[0].at, a.word_count = word(s.tables[0].dims[0]);
    a.places = s.tables[1].at, a.place_ids = s.ids[1].at, a.place_count = word(s.tables[1].dims[0]);
    a.kinds = s.added.at;
    a.embedding_weight = s.first.weight.at, a.embedding_bias = s.first.bias.at, a.embedding_epsilon = float(s.first.epsilon);
    a.starts = first == 0 ? s.starts.at : scratch + starts_at, a.texts = word(s.starts.dims[0] - 1);
    a.N = word(s.N), a.tiles = word(clusters());
    a.first = first, a.end = end, a.stages = word(2 * std::int64_t(s.layers.size())), a.base = first / 2, a.rows = rows();
    const bool alone = a.tiles == 1, whole = (alone || together) && first == 0 && end == a.stages;
    a.kept_starts = first == 0 && !whole ? scratch + starts_at : 0;
    a.x = whole ? 0 : scratch, a.heads = alone || together ? 0 : scratch + std::uint64_t(rows_bytes);
    if (together) a.counts = counts(scratch).first, a.keys = scratch + std::uint64_t(keys_at), a.sums = scratch + std::uint64_t(sums_at);
    a.y = (alone || together) && end == a.stages ? s.y.at : 0;
    a.first_row = s.pooling.how == pooling_kind::first ? 1 : 0, a.normalise = s.pooling.normalise ? 1 : 0,
    a.least_norm = op::pool::least_norm;
    a.scale = float(s.scale * std::numbers::log2e), a.epsilon = float(s.layers.front().last.epsilon);
    return a;
  }
  /// The counts of launches of so many clusters, which all of them count on alike.
  range counts(std::uint64_t scratch) const { return {scratch + std::uint64_t(zeros_at + (clusters() - 1) * counts_bytes), counts_bytes}; }
  std::int32_t last_step() const {
    return std::int32_t(encoder_steps::steps_before + steps_.layers.size() * encoder_steps::steps_of_layer);
  }
  dispatch launch(std::uint64_t scratch, int first, int end, bool together) const {
    const encoder_steps& s = steps_;
    gpu::encode_arguments a = arguments(scratch, first, end, together);
    dispatch d;
    const auto weights = [&](const encoder_steps::product& p) {
      d.reads.emplace_back(p.weight), d.early.emplace_back(p.weight), d.reads.emplace_back(p.bias.at, 2 * p.weight.dims[1]);
    };
    const auto normalised = [&](const encoder_steps::norm& n) {
      d.reads.emplace_back(n.weight.at, 2 * columns), d.reads.emplace_back(n.bias.at, 2 * columns);
    };
    for (int k = first / 2; k <= (end - 1) / 2; ++k) {
      const encoder_steps::layer& l = s.layers[std::size_t(k)];
      const std::size_t at = std::size_t(k - a.base), maps = offsetof(gpu::encode_arguments, layers) + at * sizeof(gpu::encode_layer);
      a.vectors[at] = {l.qkv.bias.at, l.projection.bias.at, l.middle.weight.at, l.middle.bias.at,
                       l.up.bias.at,  l.down.bias.at,       l.last.weight.at,   l.last.bias.at};
      const int begins = std::max(first, 2 * k), ends = std::min(end, 2 * k + 2);
      if (begins == 2 * k) {
        d.maps.push_back(lines_of(maps + offsetof(gpu::encode_layer, qkv), l.qkv.weight));
        weights(l.qkv);
      }
      if (ends == 2 * k + 2) {
        d.maps.push_back(columns_of(maps + offsetof(gpu::encode_layer, projection), l.projection.weight));
        d.maps.push_back(lines_of(maps + offsetof(gpu::encode_layer, up), l.up.weight));
        d.maps.push_back(columns_of(maps + offsetof(gpu::encode_layer, down), l.down.weight));
        for (const auto* p : {&l.projection, &l.up, &l.down}) weights(*p);
        normalised(l.middle), normalised(l.last);
      }
      const auto steps_of = [&](int from, int to) {
        for (int i = from; i < to; ++i)
          d.also.push_back(std::int32_t(encoder_steps::steps_before + std::size_t(k) * encoder_steps::steps_of_layer) + i);
      };
      if (begins == 2 * k) steps_of(0, 1);
      if (ends == 2 * k + 2) steps_of(1, int(encoder_steps::steps_of_layer));
    }
    const range x(scratch, 2 * s.N * columns), passed(scratch + std::uint64_t(rows_bytes), heads_bytes),
        kept(scratch + starts_at, starts_bytes);
    if (first == 0) {
      d.reads.emplace_back(s.starts);
      d.host.inputs = {offsetof(gpu::encode_arguments, word_ids), offsetof(gpu::encode_arguments, place_ids),
                       offsetof(gpu::encode_arguments, starts)};
      for (std::size_t i = 0; i < 2; ++i) d.reads.emplace_back(s.tables[i]), d.reads.emplace_back(s.ids[i]);
      d.reads.emplace_back(s.added.at, 2 * columns);
      normalised(s.first);
      for (std::int32_t i = 0; i < std::int32_t(encoder_steps::steps_before); ++i) d.also.push_back(i);
    } else {
      d.reads.push_back(x), d.reads.push_back(kept);
    }
    if (a.kept_starts != 0) d.writes.push_back(kept);
    if (a.x != 0) d.writes.push_back(x);
    if (a.heads != 0) d.reads.push_back(passed), d.writes.push_back(passed);
    if (together)
      for (const range& r : {counts(scratch), range(a.keys, keys_bytes), range(a.sums, sums_bytes)})
        d.reads.push_back(r), d.writes.push_back(r);
    if (a.y != 0) {
      d.writes.emplace_back(s.y);
      d.host.output = offsetof(gpu::encode_arguments, y_host);
      d.also.push_back(last_step());
    }
    d.step = d.also.back();
    d.also.pop_back();
    d.code = &fatbins::encode_hopper;
    d.function = rows() == 16 ? "encode_384_16" : "encode_384_24";
    d.arguments.resize(sizeof a);
    std::memcpy(d.arguments.data(), &a, sizeof a);
    static_assert(sizeof a <= dispatch::argument_limit);
    d.count = per_block(clusters() * gpu::encode_ranks, gpu::encode_threads, gpu::encode_bytes(int(columns), int(hidden), rows()));
    d.count.cluster = gpu::encode_ranks, d.count.together = together;
    d.default_threads = d.count.threads;
    d.set = isotope::kernels::native::name;
    d.matrices = "bf16";
    d.starts_early = !together;
    return d;
  }
  /// The launch that pools the rows, where clusters do not share one.
  dispatch pool(std::uint64_t scratch) const {
    gpu::encode_arguments a = arguments(scratch, 1, 0, false);
    a.y = steps_.y.at;
    dispatch d;
    d.step = last_step();
    d.reads = {range(scratch, 2 * steps_.N * columns), range(a.starts, starts_bytes)};
    d.writes.emplace_back(steps_.y);
    d.host.output = offsetof(gpu::encode_arguments, y_host);
    d.code = &fatbins::encode_hopper;
    d.function = "encode_pool_384";
    d.arguments.resize(sizeof a);
    std::memcpy(d.arguments.data(), &a, sizeof a);
    d.count = per_block(a.texts, 32 * gpu::encode_warps);
    d.default_threads = d.count.threads;
    d.set = isotope::kernels::native::name;
    d.starts_early = true;
    return d;
  }
};

}  // namespace isotope::cuda
