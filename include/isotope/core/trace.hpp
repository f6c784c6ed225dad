#pragma once
/// The recorded program: values, nodes and parameters, plain data in trace order.
#include <array>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <vector>

#include "fixed_string.hpp"
#include "late.hpp"
#include "mesh.hpp"
#include "op_info.hpp"
#include "precision.hpp"
#include "quantized.hpp"
#include "shape.hpp"

namespace isotope {

using place = std::source_location;

/// The memory region of a value. `param` are the parameters that ops read, `packed` pre-packed copies of weights for gemms, `master` the f32 copies of
/// parameters that bf16 programs update, `moment` the optimiser's moments, `state` what a model keeps from run to run, such as a KV cache.
enum class value_kind : std::uint8_t { input, output, param, packed, master, grad, moment, state, temp };
inline constexpr int value_kinds = 9;

/// How a parameter starts: zeros, ones, or N(0, scale^2).
struct initializer {
  enum class kind : std::uint8_t { zeros, ones, normal } how = kind::zeros;
  double scale = 0;
  friend constexpr bool operator==(const initializer&, const initializer&) = default;
};
namespace init {
inline constexpr initializer zeros{initializer::kind::zeros, 0};
inline constexpr initializer ones{initializer::kind::ones, 1};
constexpr initializer normal(double deviation) { return {initializer::kind::normal, deviation}; }
}  // namespace init

/// A tensor of the program. A value with `base` is a view of that value from `offset` on; offset and strides count elements.
struct value {
  shape dims;
  extents strides{};  // elements
  std::int64_t offset = 0;
  std::int64_t rank_stride = 0;  // elements that the offset grows by with each data index
  std::int32_t base = -1, producer = -1, block = -1;
  std::int32_t late = -1;  // trace::late: its strides and offset where they depend on late sizes; -1: they do not
  dtype type = dtype::f32;
  value_kind kind = value_kind::temp;
  bool wants_gradient = false;
};

/// One instruction of an element-wise body. Operand k < 8 is input k of the node, 8 + j the result of instruction j,
/// `gemm_result` the value that the host node (a matmul) computed. `store` is the output it is written to, or -1.
struct micro_op {
  const op_info* op = nullptr;
  std::array<std::int8_t, 3> arg{-1, -1, -1};
  std::int8_t store = -1;
  dtype type = dtype::f32;  // each result is rounded to it
  double scalar = 0;        // attributes::scalar of the op it stands for
};
inline constexpr std::int8_t gemm_result = -2;
inline constexpr int max_micro_ops = 16;

inline constexpr std::uint8_t phase_first = 1, phase_later = 2, phase_last = 4, phase_always = 7;

struct node {
  const op_info* op = nullptr;
  const op_rules* rules = nullptr;  // of the same op
  std::array<std::int32_t, max_inputs> in{-1, -1, -1, -1, -1, -1, -1, -1};
  std::array<std::int32_t, max_outputs> out{-1, -1, -1, -1, -1, -1};
  attributes attr;
  std::int32_t body = 0, body_size = 0;  // range of trace::micro_ops
  std::int32_t block = -1;
  std::uint32_t ordinal = 0;  // number of a random op in trace order: its random stream, which recomputed copies share
  std::uint8_t phases = phase_always;
  std::uint8_t accumulate = 0;  // bit k: output k is added to in later phases
  std::uint8_t adds = 0;        // bit k: output k is added to in every phase: it is the result of an earlier node, its base
  std::int8_t summed = -1;      // the output whose column sums are the last output (plan/column_sums.hpp); -1: none is
  bool dead = false;
  bool decomposed = false;  // part of the decomposition of another op
  bool effect = false;      // kept even if no op reads its outputs
  /// Makes the node one of another op.
  constexpr void becomes(const op_rules& r) {
    op = r.info;
    rules = &r;
  }
  constexpr int inputs() const { return used(in.data(), max_inputs); }
  constexpr int outputs() const { return used(out.data(), max_outputs); }
  static constexpr int used(const std::int32_t* ids, int limit) {
    int n = 0;
    while (n < limit && ids[n] >= 0) ++n;
    return n;
  }
};

/// Why the head of a model is not divided into chunks of rows (plan/head_policy.hpp).
enum class head_obstacle : std::uint8_t { none, no_cross_entropy, loss_is_read, no_product, columns, recomputed, one_row };

struct parameter {
  name path;
  std::int32_t value = -1, grad = -1, packed = -1;  // packed: its pre-packed copy for matmuls; -1: none
  initializer init;
  bool decay = true, trainable = true;
  double rate_scale = 1;           // factor on the learning rate
  int muon = -1;                   // param_options::muon; 1 or 0 once choose_matrices has decided
  axis_split split;                // how the devices of a tensor group divide it
  std::int64_t second = -1;        // offset of its second moment; -1: it has none
  bool packed_transposed = false;  // whether the packed copy is for products with its transpose
};
struct named_value {
  name label;
  std::int32_t value = -1;
};

struct trace {
  std::vector<value> values;
  std::vector<node> nodes;
  std::vector<micro_op> micro_ops;
  std::vector<const op_rules*> micro_rules;  // of the op of each of micro_ops
  std::vector<parameter> params;
  std::vector<named_value> inputs, outputs, states;
  std::vector<late_layout> late;
  bool any_late = false;  // some value has a late dimension
  message error;          // the first one; empty: none
  dtype program = dtype::f32;
  std::int32_t blocks = 0;
  std::int32_t head_chunks = 1;  // in which the head is computed
  head_obstacle obstacle = head_obstacle::none;
  device_mesh mesh;
  bool shards_updates = false;    // each data index updates a part of the weights alone (ZeRO-1)
  std::int64_t bucket_bytes = 0;  // of gradients that one collective of the data group takes; 0: all

  /// The value that owns the memory of v: v itself, or the value that it is a view of.
  constexpr std::int32_t root(std::int32_t v) const {
    while (values[std::size_t(v)].base >= 0) v = values[std::size_t(v)].base;
    return v;
  }
  /// Offset of v in its root, in elements.
  constexpr std::int64_t root_offset(std::int32_t v) const {
    std::int64_t n = 0;
    for (; values[std::size_t(v)].base >= 0; v = values[std::size_t(v)].base) n += values[std::size_t(v)].offset;
    return n;
  }
  /// How many elements further v lies in its root for each data index.
  constexpr std::int64_t root_rank_stride(std::int32_t v) const {
    std::int64_t n = 0;
    for (; values[std::size_t(v)].base >= 0; v = values[std::size_t(v)].base) n += values[std::size_t(v)].rank_stride;
    return n;
  }
  constexpr void add_instruction(const micro_op& m, const op_rules* by) {
    micro_ops.push_back(m);
    micro_rules.push_back(by);
  }
  constexpr std::int32_t add_value(const shape& s, dtype t, value_kind k, bool may_be_late = true) {
    value v;
    v.dims = s;
    v.strides = dense_strides(s);
    v.type = t;
    v.kind = k;
    if (may_be_late && s.has_scalar()) {
      any_late = true;
      if (k != value_kind::state) v.late = add_late(late_dense(s));  // a state keeps the strides of the limits
    }
    values.push_back(v);
    return std::int32_t(values.size() - 1);
  }
  constexpr std::int32_t add_late(const late_layout& l) {
    if (!l.late()) return -1;
    late.push_back(l);
    return std::int32_t(late.size() - 1);
  }
  /// Strides of v and its offset in its base.
  constexpr late_layout layout_of(std::int32_t v) const {
    const value& x = values[std::size_t(v)];
    if (x.late >= 0) return late[std::size_t(x.late)];
    late_layout r;
    for (std::size_t i = 0; i < std::size_t(max_rank); ++i) r.strides[i].factor = x.strides[i];
    r.move({x.offset, 0});
    return r;
  }
  /// Whether a and b have the same strides, whatever the actual sizes are.
  constexpr bool same_strides(std::int32_t a, std::int32_t b) const {
    const value &x = values[std::size_t(a)], &y = values[std::size_t(b)];
    return x.strides == y.strides && ((x.late < 0 && y.late < 0) || layout_of(a).strides == layout_of(b).strides);
  }
  constexpr bool dense(std::int32_t v) const {
    const value& x = values[std::size_t(v)];
    return is_dense(x.dims, x.strides) && (!x.dims.has_scalar() || is_late_dense(x.dims, layout_of(v)));
  }
};

/// The last part of a path, for `file:line`.
constexpr std::string_view file_of(const place& at) {
  std::string_view f = at.file_name();
  const auto slash = f.rfind('/');
  return slash == f.npos ? f : f.substr(slash + 1);
}

}  // namespace isotope
