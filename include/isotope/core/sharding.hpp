#pragma once
/// The interface between the planner and an op's rule for operands that are divided between devices.
#include <array>
#include <cstdint>
#include <vector>

#include "tape.hpp"

namespace isotope {

/// Which ids name rows of this device, of a table whose rows are divided (op/own_rows.hpp): computed once for all ops that read the same ids.
struct divided_ids {
  std::int32_t ids = -1;
  axis_split rows;
  std::int32_t number = -1, own = -1, valid = -1;
};
/// A range of a divided axis that a view took: the gradient of the view puts it back.
struct divided_range {
  axis_split along;  // of the axis
  std::int64_t first = 0, length = 0;
};
/// What rules of earlier nodes leave for those of later ones: the latest of each, at most `room` of them.
template <class E> struct latest_notes {
  static constexpr int room = 32;
  std::array<E, room> all{};
  std::int64_t noted = 0;
  constexpr void note(const E& e) { all[std::size_t(noted++ % room)] = e; }
  constexpr int size() const { return int(noted < room ? noted : room); }
  /// Number k of them, the latest first.
  constexpr const E& operator[](int k) const { return all[std::size_t((noted - 1 - k) % room)]; }
};
struct sharding_notes {
  latest_notes<divided_ids> ids;
  latest_notes<divided_range> ranges;
};
/// A value of a trace, seen from all devices.
struct spread_value {
  distribution how;
  shape dims;               // on all devices together
  dtype type = dtype::f32;  // before it became a pending sum
  std::int32_t now = -1;    // what readers read in its place
  axis_split wanted;        // how it is divided if it is a constant that a gradient is added to
};

/// The argument of an op's `shard`. It provides where the elements of each operand are and their shapes, of all devices together; the rule changes the attributes to
/// those of one device and says by `yield` where the elements of each output are, or replaces the op by others. Sums that are pending (distribution::partial)
/// are added up before the rule runs. An output without `yield` is whole.
class sharding {
 public:
  using T = tensor<tape>;

  constexpr sharding(tape& t, const node& n, const device_mesh& mesh, const std::vector<spread_value>& values, sharding_notes& kept)
      : attr(n.attr), ordinal(n.ordinal), notes(kept), mesh_(mesh), t_(t), n_(n) {
    for (int k = 0; k < n.inputs(); ++k) {
      in[std::size_t(k)] = n.in[std::size_t(k)];
      at_[std::size_t(k)] = values[std::size_t(n.in[std::size_t(k)])].how;
      dims_[std::size_t(k)] = values[std::size_t(n.in[std::size_t(k)])].dims;
    }
  }

  attributes attr;
  std::uint32_t ordinal;
  sharding_notes& notes;

  constexpr tape& machine() const { return t_; }
  constexpr const op_info& op() const { return *n_.op; }
  constexpr int parts() const { return mesh_.tensor; }
  constexpr int replicas() const { return mesh_.data; }
  constexpr int inputs() const { return n_.inputs(); }
  /// The shape of operand k on all devices together, and on one device.
  constexpr const shape& dims(int k) const { return dims_[std::size_t(k)]; }
  constexpr const shape& local(int k) const { return t_.describe(in[std::size_t(k)]).dims; }
  constexpr const distribution& at(int k) const { return at_[std::size_t(k)]; }
  constexpr bool divided(int k) const { return at(k).is_divided(); }
  constexpr const axis_split& along(int k) const { return at(k).along; }
  constexpr bool all_whole() const {
    for (int k = 0; k < inputs(); ++k)
      if (divided(k)) return false;
    return true;
  }
  /// Operand k, as each device has it.
  constexpr T x(int k) const { return {&t_, in[std::size_t(k)]}; }

  constexpr void yield(int k, const distribution& d) { to[std::size_t(k)] = d; }
  constexpr void yield_divided(int k, const axis_split& s) { yield(k, distribution::divided(s)); }
  /// Takes the op's place: output k is y, which other ops give.
  constexpr void replace(int k, T y, const distribution& d = {}) {
    given[std::size_t(k)] = y.id;
    to[std::size_t(k)] = d;
    replaced = true;
  }
  /// Reads x, which is divided so, in place of operand k.
  constexpr void replace_operand(int k, std::int32_t x, const axis_split& s) {
    in[std::size_t(k)] = x;
    at_[std::size_t(k)] = distribution::divided(s);
  }
  /// Fails unless the condition holds. The message begins with the op and the shapes of its operands, and ends with the layer.
  constexpr bool require(bool condition, std::string_view what) {
    if (!condition && error.empty()) error << what;
    return condition;
  }

  // The rest is for distribute.
  std::array<std::int32_t, max_inputs> in{-1, -1, -1, -1, -1, -1, -1, -1};
  std::array<std::int32_t, max_outputs> given{-1, -1, -1, -1, -1, -1};
  std::array<distribution, max_outputs> to{};
  bool replaced = false;
  message error;

 private:
  device_mesh mesh_;
  tape& t_;
  const node& n_;
  std::array<distribution, max_inputs> at_{};
  std::array<shape, max_inputs> dims_{};
};

}  // namespace isotope
