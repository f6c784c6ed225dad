#pragma once
/// A step of decoding of up to eight rows as one launch: what decode_halves has found, in the kernel of native/decode_step_hopper.cu or, of two rows and more,
/// native/decode_step_few_hopper.cu.
#include <isotope/kernels/cuda/decode/step_few.h>
#include <isotope/fatbins/decode_step_few_hopper.hpp>
#include <isotope/fatbins/decode_step_hopper.hpp>
#include <isotope/kernels/cuda/joined/halves.hpp>

namespace isotope::cuda {

class decode_whole_step : public decode_halves {
 public:
  using decode_halves::decode_halves, decode_halves::join;
  /// Bytes of memory that whole steps pass rows on in, of one row and then of more; they are zeros before the first step.
  static constexpr std::int64_t run_bytes = 256, one_words_bytes = std::int64_t(16) * columns / gpu::decode_head * columns + run_bytes,
                                few_words_bytes = gpu::decode_step_few_words(columns) + run_bytes,
                                words_bytes = one_words_bytes + few_words_bytes;

  /// Whether one launch can take the place of all of them. Its blocks wait for each other, so they must all run at the same time, which the device decides.
  bool takes_one_launch() const {
    const bool few = found() && table_.rows > 1;
    if (!found() || table_.rows > gpu::decode_most_rows || layers_.size() > gpu::decode_step_layers ||
        !(few ? fatbins::decode_step_few_hopper : fatbins::decode_step_hopper).there() ||
        device_.shared_bytes < (few ? gpu::decode_step_few_bytes(columns) : gpu::decode_step_bytes(columns)))
      return false;
    return std::all_of(layers_.begin(), layers_.end(), [&](const layer& l) {
      return l.qkv.norm.epsilon == last_norm_.epsilon && l.up.norm.epsilon == last_norm_.epsilon &&
             l.attention.B == layers_[0].attention.B && l.attention.T == layers_[0].attention.T &&
             l.attention.scale == layers_[0].attention.scale && l.attention.sequence == layers_[0].attention.sequence &&
             l.attention.position == layers_[0].attention.position;
    });
  }
  /// That launch, which passes rows on in `words`, memory of words_bytes.
  dispatch whole_step(std::uint64_t words) const {
    const gpu::cached_heads& h = layers_[0].attention;
    const std::int32_t N = table_.rows;
    const range passed = N == 1 ? range(words, one_words_bytes) : range(words + std::uint64_t(one_words_bytes), few_words_bytes);
    gpu::decode_step a{};
    a.rows = rows_of(last_norm_, 0, 0, N);
    a.sequence = h.sequence, a.position = h.position;
    a.words = passed.first, a.run = passed.end - run_bytes;
    a.table = table_.b.at, a.logits = table_.y;
    a.layers = std::int32_t(layers_.size()), a.B = std::int32_t(h.B), a.T = std::int32_t(h.T), a.V = table_.columns, a.scale = h.scale;
    std::vector<range> given{{table_.b.at, 2 * C * table_.columns}, {h.sequence, 4 * N}, {h.position, 4 * N}}, caches;
    std::vector<tensor_map> maps{boxes(offsetof(gpu::decode_step, table_boxes), table_.b.at, table_.columns, C, gpu::decode_box, 16)};
    tensor_map& table = maps.back();  // rows in parts of a box's columns, which lie behind each other in shared memory
    table.rank = 3, table.dims[0] = gpu::decode_box, table.dims[2] = table.box[2] = C / gpu::decode_box;
    table.strides_bytes[1] = 2 * gpu::decode_box;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const layer& l = layers_[i];
      gpu::decode_step_layer& to = a.layer[i];
      to.norm_weight[0] = l.qkv.norm.weight, to.norm_bias[0] = l.qkv.norm.bias, to.norm_weight[1] = l.up.norm.weight,
      to.norm_bias[1] = l.up.norm.bias;
      to.bias = l.qkv.operands[0].at, to.projection_bias = l.projection.operands[0].at, to.up_bias = l.up.operands[0].at,
      to.down_bias = l.down.operands[0].at;
      to.keys = l.attention.keys, to.values = l.attention.values;
      const std::size_t at = offsetof(gpu::decode_step, layer) + i * sizeof to;
      maps.push_back(boxes(at + offsetof(gpu::decode_step_layer, weight), l.qkv.b.at, 3 * C, C, gpu::decode_box, std::uint32_t(D)));
      maps.push_back(
          boxes(at + offsetof(gpu::decode_step_layer, projection), l.projection.b.at, C, C, gpu::decode_narrow_box, gpu::decode_box));
      maps.push_back(
          boxes(at + offsetof(gpu::decode_step_layer, up), l.up.b.at, hidden, C, gpu::decode_box, std::uint32_t(hidden / heads)));
      maps.push_back(boxes(at + offsetof(gpu::decode_step_layer, down), l.down.b.at, C, hidden, gpu::decode_narrow_box, gpu::decode_box));
      for (const range& r :
           {range(l.qkv.b.at, 6 * C * C), range(l.projection.b.at, 2 * C * C), range(l.up.b.at, 8 * C * C), range(l.down.b.at, 8 * C * C),
            range(to.bias, 6 * C), range(to.projection_bias, 2 * C), range(to.up_bias, 8 * C), range(to.down_bias, 2 * C),
            range(to.norm_weight[0], 2 * C), range(to.norm_bias[0], 2 * C), range(to.norm_weight[1], 2 * C), range(to.norm_bias[1], 2 * C)})
        given.push_back(r);
      for (const std::uint64_t cache : {to.keys, to.values}) caches.emplace_back(cache, 2 * h.B * h.T * C);
    }
    grid count = clusters(heads, N == 1 ? gpu::decode_step_bytes(columns) : gpu::decode_step_few_bytes(columns));
    count.threads = N == 1 ? gpu::decode_step_threads : gpu::decode_step_few_threads;
    count.together = true;
    dispatch d = launch(N == 1 ? "decode_step_768" : "decode_step_few_768", a, count, first_, end_, given);
    d.code = N == 1 ? &fatbins::decode_step_hopper : &fatbins::decode_step_few_hopper;
    d.maps = std::move(maps);
    if (N > 1) take_rows(d, a);
    d.reads.insert(d.reads.end(), caches.begin(), caches.end());
    d.writes = caches;
    d.writes.push_back(passed);
    d.writes.emplace_back(a.logits, 2 * std::int64_t(N) * table_.columns);
    return d;
  }
  void join(dispatch one) {
    std::vector<dispatch> made;
    made.push_back(std::move(one));
    replace(std::move(made));
  }

 private:
  /// The arguments of several rows in place of those of one: caches are boxes, too.
  void take_rows(dispatch& d, const gpu::decode_step& a) const {
    gpu::decode_step_few few{};
    few.step = a;
    d.arguments.resize(sizeof few);
    std::memcpy(d.arguments.data(), &few, sizeof few);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const gpu::cached_heads& h = layers_[i].attention;
      const auto cache = [&](std::size_t offset, std::uint64_t at) {
        d.maps.push_back(
            boxes(offset + i * sizeof(gpu::tensor_map_bytes), at, h.B * heads * h.T, D, std::uint32_t(D), gpu::decode_step_chunk));
        d.maps.back().swizzle_bytes = 128;
      };
      cache(offsetof(gpu::decode_step_few, keys), h.keys);
      cache(offsetof(gpu::decode_step_few, values), h.values);
    }
  }
};

}  // namespace isotope::cuda
