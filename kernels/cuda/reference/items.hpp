#pragma once
/// What the reference kernels share when they record.
#include <cstdint>

#include <isotope/backend/cuda/launch.hpp>

namespace isotope::cuda::reference {

inline std::int32_t number_of(dtype t) { return std::int32_t(t); }

/// The axes of a tensor outside a bit mask, then those of the mask; `outer` is the number of the former.
struct axes_apart {
  gpu::axes axes{};
  std::int32_t outer = 0;
  axes_apart(const view& x, std::int64_t mask) {
    for (int pass = 0; pass < 2; ++pass) {
      for (int k = 0; k < x.dims.rank; ++k) {
        if (((mask >> k) & 1) != pass) continue;
        axes.dims[axes.rank] = x.dims[k];
        axes.strides[axes.rank++] = x.strides[std::size_t(k)];
      }
      if (pass == 0) outer = axes.rank;
    }
  }
  std::int64_t results() const { return count(0, outer); }
  std::int64_t terms() const { return count(outer, axes.rank); }

 private:
  std::int64_t count(int first, int end) const {
    std::int64_t n = 1;
    for (int k = first; k < end; ++k) n *= axes.dims[k];
    return n;
  }
};

}  // namespace isotope::cuda::reference
