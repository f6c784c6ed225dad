#pragma once
/// Tensors of which a rank keeps only a part where the data indices of a mesh divide them (ZeRO-1): the masters and moments of trained parameters.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../core/tensor_kind.hpp"
#include "../../plan/local_plan.hpp"

namespace isotope {

/// Whether each data index keeps a part of a tensor.
inline bool divided_by_data(const plan_view& p, tensor_kind what, std::size_t k) {
  if (!p.totals.shards_updates || k >= p.slots.size() || !p.slots[k].trained) return false;
  if (what == tensor_kind::parameter) return p.totals.region[std::size_t(value_kind::master)] > 0;
  return (what == tensor_kind::moment1 && p.totals.moments > 0) || (what == tensor_kind::moment2 && p.totals.moments > 1);
}
/// Whether a parameter has no master because it is frozen and the plan divides masters. Its values are those that kernels read.
inline bool frozen_without_master(const plan_view& p, tensor_kind what, std::size_t k) {
  return p.totals.shards_updates && what == tensor_kind::parameter && k < p.slots.size() && !p.slots[k].trained &&
         accum_of(p.totals.program) != p.totals.program;
}
/// A part of a tensor: `before` elements come before it in the tensor as this tensor index has it.
struct kept_part {
  operand where;
  std::int64_t before = 0, count = 0;
};
/// Calls f(kept_part) for the parts that a rank keeps of a tensor of which one of the functions above is true, in ascending order, up to the first failure.
/// @param kept  owned_pieces of the rank
template <class F>
result<void> for_kept_parts(const plan_view& p, const std::vector<owned_piece>& kept, tensor_kind what, std::size_t k, const F& f) {
  const slot& s = p.slots[k];
  const bool frozen = !s.trained, weight = what == tensor_kind::parameter;
  const dtype type = frozen ? s.type : accum_of(p.totals.program);
  const value_kind region = frozen ? value_kind::param : weight ? value_kind::master : value_kind::moment;
  // A rank has as many elements of first moments as of second ones, and these come behind those.
  const std::int64_t first = what == tensor_kind::moment2 ? p.totals.region[std::size_t(region)] / 2 : 0, size = size_of(type);
  const auto part = [&](std::int64_t at, std::int64_t before, std::int64_t n) {
    const shape dims{n};
    return f(kept_part{
        {.at = first + at * size, .bytes = n * size, .dims = dims, .strides = dense_strides(dims), .type = type, .region = region},
        before,
        n});
  };
  return frozen ? part(s.at, 0, s.dims.count()) : for_masters(kept, p, s.at, s.dims.count(), part);
}

}  // namespace isotope
