#pragma once
/// Draws classes in proportion to softmax(logits / temperature).
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_categorical.hpp>
#include <isotope/op/categorical.hpp>

#include "categorical.h"

namespace isotope::cuda {

template <class P> struct kernel<op::categorical, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &logits = l.in[0], &y = l.out[0];
    const auto rows = y.dims.count();
    if (rows == 0) return;
    const gpu::reference_categorical_arguments g{logits.at,       y.at,
                                                 l.scalars,       rows,
                                                 logits.dims[-1], l.constants<op::categorical>().temperature,
                                                 l.ordinal,       std::int32_t(logits.type)};
    r.add(fatbins::reference_categorical, "reference_categorical", g, per_item(rows), {logits, scalars_of(l)}, {y});
  }
};

}  // namespace isotope::cuda
