#pragma once
/// A step of decoding of one row as one launch: what decode_halves has found, in the kernel of native/decode_step_hopper.cu.
#include <isotope/kernels/cuda/decode/step.h>
#include <isotope/fatbins/decode_step_hopper.hpp>
#include <isotope/kernels/cuda/joined/halves.hpp>

namespace isotope::cuda {

class decode_whole_step : public decode_halves {
 public:
  using decode_halves::decode_halves, decode_halves::join;
  /// Bytes of memory that whole steps pass rows on in; they are zeros before the first one.
  static constexpr std::int64_t words_bytes = std::int64_t(16) * columns / gpu::decode_head * columns + 256;

  /// Whether one launch can take the place of all of them. Its blocks wait for each other, so they must all run at the same time, which the device decides.
  bool takes_one_launch() const {
    if (!found() || table_.rows != 1 || layers_.size() > gpu::decode_step_layers || !fatbins::decode_step_hopper.there() ||
        device_.shared_bytes < gpu::decode_step_bytes(columns))
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
    gpu::decode_step a{};
    a.rows = rows_of(last_norm_, 0, 0, 1);
    a.sequence = h.sequence, a.position = h.position;
    a.words = words, a.run = words + std::uint64_t(words_bytes) - 256;
    a.table = table_.b.at, a.logits = table_.y;
    a.layers = std::int32_t(layers_.size()), a.B = std::int32_t(h.B), a.T = std::int32_t(h.T), a.V = table_.columns, a.scale = h.scale;
    std::vector<range> given{{table_.b.at, 2 * C * table_.columns}, {h.sequence, 4}, {h.position, 4}}, caches;
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
    grid count = clusters(heads, gpu::decode_step_bytes(columns));
    count.threads = gpu::decode_step_threads;
    count.together = true;
    dispatch d = launch("decode_step_768", a, count, first_, end_, given);
    d.code = &fatbins::decode_step_hopper;
    d.maps = std::move(maps);
    d.reads.insert(d.reads.end(), caches.begin(), caches.end());
    d.writes = caches;
    d.writes.emplace_back(words, words_bytes);
    d.writes.emplace_back(a.logits, 2 * table_.columns);
    return d;
  }
  void join(dispatch one) {
    std::vector<dispatch> made;
    made.push_back(std::move(one));
    replace(std::move(made));
  }
};

}  // namespace isotope::cuda
