#pragma once
/// The plan of one rank. A plan is the same for all ranks of a mesh; what differs are places of operands and constants of ops.
#include <algorithm>
#include <span>
#include <vector>

#include "../core/error.hpp"
#include "../op/reduce_scatter.hpp"
#include "plan.hpp"

namespace isotope {

/// The steps and operands of a plan, on one rank.
class local_plan {
 public:
  /// `p` must outlive this.
  local_plan(const plan_view& p, const mesh_position& at) : view_(p) {
    steps_.resize(p.steps.size());  // loops, and spans of pointers: what takes iterators costs every reader compile time
    for (std::size_t k = 0; k < steps_.size(); ++k) steps_[k] = p.steps[k];
    operands_.resize(p.operands.size());
    for (std::size_t k = 0; k < operands_.size(); ++k) operands_[k] = p.operands[k];
    for (step& s : steps_)
      if (s.op->localise != nullptr) s.op->localise(s.attr, at);
    for (operand& o : operands_) {
      o.at += o.rank_stride * at.data;
      o.rank_stride = 0;
    }
    view_.steps = {steps_.data(), steps_.size()};
    view_.operands = {operands_.data(), operands_.size()};
  }
  local_plan(const local_plan&) = delete;
  local_plan& operator=(const local_plan&) = delete;

  const plan_view& view() const { return view_; }

 private:
  std::vector<step> steps_;
  std::vector<operand> operands_;
  plan_view view_;
};

/// With ZeRO-1, elements whose masters and moments a rank keeps: [first, first + count) of the gradient region, `at` elements into the regions of the optimiser.
struct owned_piece {
  std::int64_t first = 0, count = 0, at = 0;
};
/// The pieces of a data index, in ascending order; none where every rank keeps all.
inline std::vector<owned_piece> owned_pieces(const plan_view& p, int data) {
  std::vector<owned_piece> all;
  if (!p.totals.shards_updates) return all;
  for (const step& s : p.steps) {
    const operand& o = p.operands[std::size_t(s.operands)];
    if (s.op != &info<op::reduce_scatter> || o.region != value_kind::grad) continue;
    const std::int64_t each = o.dims.count() / p.totals.mesh.data;
    std::size_t k = all.size();
    all.push_back({});
    const owned_piece own{o.at / size_of(o.type) + each * data, each, 0};
    for (; k > 0 && own.first < all[k - 1].first; --k) all[k] = all[k - 1];
    all[k] = own;
  }
  for (std::size_t k = 1; k < all.size(); ++k) all[k].at = all[k - 1].at + all[k - 1].count;
  return all;
}

/// Calls f(where the elements are in the master region, how many of them come before, how many there are) for those of [first, first + n) of the parameters whose
/// masters a rank keeps, up to the first failure.
template <class F>
result<void> for_masters(const std::vector<owned_piece>& kept, const plan_view& p, std::int64_t first, std::int64_t n, const F& f) {
  if (!p.totals.shards_updates) return f(first, std::int64_t(0), n);
  for (const owned_piece& k : kept) {
    const std::int64_t from = std::max(first, k.first), to = std::min(first + n, k.first + k.count);
    if (from >= to) continue;
    if (auto r = f(k.at + from - k.first, from - first, to - from); !r) return r;
  }
  return {};
}

/// A run of elements of a parameter that a device holds: they follow one another here and in the whole parameter.
struct piece_run {
  std::int64_t here = 0, whole = 0, count = 0;
};
/// Calls f(piece_run) for all elements of a slot that rank `tensor` of its group holds, in ascending order. Rows that pad a divided table, and units of zeros, are left out.
template <class F> constexpr void for_piece_runs(const slot& s, int tensor, const F& f) {
  if (!s.pieces.divides()) return f(piece_run{0, 0, s.dims.count()});
  const axis_split& a = s.pieces.along;
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < a.axis; ++i) outer *= s.dims[i];
  for (int i = a.axis + 1; i < s.dims.rank; ++i) inner *= s.dims[i];
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t here = o * s.dims[a.axis], whole = o * a.size();
    for (int g = 0; g < a.groups; ++g) {
      const std::int64_t size = a.sizes[std::size_t(g)], each = a.piece(g, s.pieces.parts), left = size - each * tensor;
      const std::int64_t n = left < 0 ? 0 : left < each ? left : each;
      if (n > 0) f(piece_run{here * inner, (whole + each * tensor) * inner, n * inner});
      here += each;
      whole += size;
    }
  }
}

}  // namespace isotope
