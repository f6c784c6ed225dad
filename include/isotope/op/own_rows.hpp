#pragma once
/// Tables whose rows are divided between devices: which ids name rows of this device. The ops here are those of other ops, so every backend has them.
#include "cast.hpp"
#include "divide.hpp"
#include "embedding.hpp"
#include "scale.hpp"
#include "select.hpp"
#include "sub.hpp"

namespace isotope::op {

/// For ids (...) i32 of the rows of a table (V, ...), of which this device has `each` from row tensor index x each on. Ids are compared in accumulation format,
/// which holds every whole number up to 2^24.
struct own_rows {
  tensor<tape> number;  // (...) the id less the first row of this device, in accumulation format
  tensor<tape> own;     // (...) 1 if the row is on this device, else 0
  tensor<tape> valid;   // (...) 1 if the row is on some device, else 0
  tensor<tape> zero, one;

  constexpr own_rows(sharding& s, tensor<tape> ids, const axis_split& rows)
      : zero(constant(s.machine(), 0)), one(constant(s.machine(), 1)) {
    tape& t = s.machine();
    for (int i = 0; i < s.notes.ids.size(); ++i)
      if (const divided_ids& k = s.notes.ids[i]; k.ids == ids.id && k.rows == rows) {
        number = {&t, k.number}, own = {&t, k.own}, valid = {&t, k.valid};
        return;
      }
    const dtype type = zero.type();
    const fill::constants first{.dims = {}, .format = type, .per_rank = double(rows.each)};
    // One op a line: C++ leaves the order of a call's arguments open, and plans made by the compiler and at run time are to have the same order.
    const auto id = isotope::cast(ids, type), each = constant(t, double(rows.each)), all = constant(t, double(rows.size()));
    const tensor<tape> start{&t, apply_op<fill>(&t, {}, first, place::current()).out[0]};
    number = isotope::sub(id, start);
    const auto between = [&](tensor<tape> x, tensor<tape> limit, tensor<tape> then) {  // `then` where 0 <= x < limit, else 0
      const auto low = isotope::less(x, zero), high = isotope::less(x, limit), some = isotope::where(high, then, zero);
      return isotope::where(low, zero, some);
    };
    valid = between(id, all, one);
    own = between(number, each, valid);  // the rows of the last device end with the table
    s.notes.ids.note({ids.id, rows, number.id, own.id, valid.id});
  }
  static constexpr tensor<tape> constant(tape& t, double x) { return isotope::fill(t, {}, accum_of(t.program()), x); }
  constexpr tensor<tape> is(tensor<tape> number_of_truth) const { return isotope::less(zero, number_of_truth); }
  /// The rows of this device by number, and in place of other ids what `others` has.
  constexpr tensor<tape> ids(tensor<tape> others) const { return isotope::cast(isotope::where(is(own), number, others), dtype::i32); }
  /// x (...) with one more axis, for tensors of rows.
  static constexpr tensor<tape> of_rows(tensor<tape> x) {
    shape s = x.dims();
    s.push(1);
    return isotope::reshape(x, s);
  }
};

/// Each device gives the rows that it has and zeros for the others: a pending sum. Ids of no row give NaN on every device.
constexpr void embedding::shard(sharding& s) {
  if (s.all_whole()) return;
  if (!s.require(s.divided(0) && s.along(0).axis == 0 && s.along(0).padded && !s.divided(1),
                 "only the rows of the table can be divided, by axis_split::with_padding(0)"))
    return;
  const own_rows rows(s, s.x(1), s.along(0));
  const auto ids = rows.ids(isotope::shift(rows.valid, -1));  // row 0 for those of others, and none for ids of no row
  const auto y = apply<embedding>(place::current(), s.attr, s.x(0), ids), zero = isotope::fill(s.machine(), {}, y.type(), 0);
  const auto others = rows.is(isotope::sub(rows.valid, rows.own));
  s.replace(0, isotope::where(own_rows::of_rows(others), zero, y), distribution::partial());
}
/// Adds to the rows of this device.
constexpr void embedding_grad::shard(sharding& s) {
  if (s.all_whole()) return;
  if (!s.require(s.divided(0) && s.along(0).axis == 0 && s.along(0).padded && !s.divided(1) && !s.divided(2),
                 "only the rows of the table can be divided, by axis_split::with_padding(0)"))
    return;
  const own_rows rows(s, s.x(2), s.along(0));
  s.replace(0, apply<embedding_grad>(place::current(), s.attr, s.x(0), s.x(1), rows.ids(own_rows::constant(s.machine(), -1))), s.at(0));
}

}  // namespace isotope::op
