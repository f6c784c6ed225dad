#pragma once
/// The last step of a Muon update; momentum.hpp has the first one.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_muon.hpp>
#include <isotope/op/muon.hpp>

#include "momentum.hpp"
#include "optimizer.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::muon, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const reference::update_operands o(l, 0);
    const auto n = o.w.dims.count();
    if (n == 0) return;
    std::vector<range> writes{o.w}, reads{o.w, o.g, o.norm, o.loss, scalars_of(l)};
    if (o.is.shadow) writes.push_back(o.shadow());
    r.add(fatbins::reference_muon, "reference_muon", o.arguments(0, n), per_item(n), std::move(reads), std::move(writes));
  }
};

}  // namespace isotope::cuda
