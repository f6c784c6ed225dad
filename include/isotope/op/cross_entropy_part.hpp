#pragma once
/// Cross-entropy over classes that are divided between devices, without gathering logits: three numbers of each row are exchanged.
#include "add.hpp"
#include "all_gather.hpp"
#include "concat.hpp"
#include "cross_entropy.hpp"
#include "div.hpp"
#include "exp.hpp"
#include "extremum.hpp"
#include "log.hpp"
#include "maximum.hpp"
#include "mul.hpp"
#include "own_rows.hpp"
#include "take_along.hpp"

namespace isotope {
namespace op {

/// Operands logits (..., N) of the classes of this device, targets (...) of all classes, top and sum over all classes, dloss, and optionally the targets of all
/// rows; output dlogits of the classes of this device, as in cross_entropy_grad.
struct cross_entropy_part_grad {
  struct constants {
    std::int64_t classes = 0;  // of this device, which has the last fewer of; the others are padding, whose gradient is 0
    std::int64_t all = 0;      // of all devices
    std::int64_t first = 0;    // of this device
    static constexpr constants of(const attributes& a) { return {.classes = a.i[0], .all = a.i[1], .first = a.i[2]}; }
    constexpr operator attributes() const { return {.i = {classes, all, first}}; }
  };
  static constexpr std::string_view name = "cross_entropy_part_grad";
  static constexpr void infer(shape_rule& r) {
    const auto c = constants::of(r.attr);
    const shape& x = r.dims(0);
    shape rows;
    for (int i = 0; i + 1 < x.rank; ++i) rows.push(x.axis(i));
    if (r.require(x.rank >= 1 && r.dims(1) == rows && r.dims(2) == rows && r.dims(3) == rows,
                  "targets, top and sum must have the shape of the logits without the last axis") &&
        r.require(r.type(1) == dtype::i32, "targets must be i32") &&
        r.require(c.classes > 0 && c.classes <= x[-1] && c.all > 0, "the classes of a device are its columns"))
      r.yield(r.dims(0), r.type(0));
  }
  static constexpr void localise(attributes& a, const mesh_position& at) {
    auto c = constants::of(a);
    c.first = c.classes * at.tensor;
    if (c.first + c.classes > c.all) c.classes = c.all - c.first;
    a = c;
  }
};

constexpr void cross_entropy_grad::shard(sharding& s) {
  if (s.all_whole()) return;
  const auto along = s.along(0);
  if (!s.require(s.divided(0) && along.axis == s.dims(0).rank - 1 && along.padded, "classes must be divided by axis_split::with_padding"))
    return;
  const cross_entropy_part_grad::constants c{.classes = along.each, .all = along.size()};
  const auto r = s.machine().record(rules<cross_entropy_part_grad>, {s.in.data(), std::size_t(s.inputs())}, c, place::current(), 0);
  s.replace(0, {&s.machine(), r.out[0]}, s.at(0));
}

}  // namespace op

/// Of rows of logits of which each device has a part, with t, e and x the largest logit of a row, the sum of exponentials and the target's logit on a device:
///   top = max t,   sum = sum e exp(t - top),   loss = avg over rows of (ln sum + top - sum x)
/// over the devices, in the order of their ranks.
constexpr void cross_entropy_of_parts(sharding& s) {
  if (s.all_whole()) return;
  const auto along = s.along(0);
  if (!s.require(s.divided(0) && along.axis == s.dims(0).rank - 1 && along.padded && !s.divided(1),
                 "classes must be divided by axis_split::with_padding") ||
      !s.require(op::cross_entropy::constants::of(s.attr).classes == along.size(), "some columns of the divided logits are not classes"))
    return;
  tape& t = s.machine();
  const auto at = place::current();
  const auto logits = s.x(0), targets = s.x(1);
  const shape rows = targets.dims();
  const std::int64_t R = rows.count(), p = s.parts();
  const dtype accum = accum_of(t.program());
  const op::own_rows own(s, targets, along);
  const auto local = apply_op<op::cross_entropy>(&t, {logits.id, targets.id},
                                                 op::cross_entropy::constants{.classes = along.each, .all = along.size()}, at);
  const auto picked = take_along(logits, op::own_rows::of_rows(own.ids(own.zero)));
  const auto here = own.is(own.own), logit_here = cast(reshape(picked, rows), accum), target = where(here, logit_here, own.zero);
  const auto row = [&](std::int32_t v) { return reshape(tensor<tape>{&t, v}, {1, R}); };
  const auto largest = row(local.out[1]), total = row(local.out[2]), hit = row(target.id),
             three = concat<tape>({largest, total, hit}, 0);  // (3,R)
  const auto all =
      apply<op::all_gather>(at, op::collective_constants{.group = std::int64_t(rank_group::tensor), .ranks = p}, three);  // (p,3,R)
  const auto tops = narrow(all, 1, 0, 1), sums = narrow(all, 1, 1, 1), logit = narrow(all, 1, 2, 1);                      // (p,1,R)
  const auto top = max(tops, {0}, true);                                                                                  // (1,1,R)
  const auto e = sum(mul(sums, exp(sub(tops, top))), {0}, true), x = sum(logit, {0}, true);                               // (1,1,R)
  const auto of_rows = [&](tensor<tape> v) { return reshape(v, rows); };
  const auto logs = log(e), rest = sub(top, x), each = of_rows(add(logs, rest)), counts = own.is(own.valid),
             losses = where(counts, each, own.zero);
  const auto counted = sum(own.valid), fewest = where(less(counted, own.one), own.one, counted);
  s.replace(0, div(sum(losses), fewest));
  s.replace(1, of_rows(top));
  s.replace(2, of_rows(e));
}
constexpr void op::cross_entropy::shard(sharding& s) { cross_entropy_of_parts(s); }

}  // namespace isotope
