#pragma once
/// Exchanges between the ranks of a group, through the group's communicator. Bound by the links between devices.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/op/all_gather.hpp>
#include <isotope/op/reduce_scatter.hpp>

namespace isotope::cuda {
namespace portable {

/// Records an exchange of `whole`, of which a rank's piece has whole.count / pieces elements; `part` is where all_gather reads the own piece, null: in `whole`.
inline void record_exchange(const launch& l, recording& r, library_collective::kind what, const view& whole, std::int64_t pieces,
                            const view* part = nullptr) {
  const library_collective c{what,     l.constants<op::all_reduce>().which(),       whole.type, whole.dims.count() / pieces,
                             whole.at, part == nullptr ? std::uint64_t{} : part->at};
  std::vector<range> reads;
  if (what != library_collective::kind::all_gather || part == nullptr) reads.push_back(whole);
  if (part != nullptr) reads.push_back(*part);
  r.add(c, std::move(reads), {whole});
}

}  // namespace portable

template <GpuPrecision P> struct kernel<op::all_reduce, P, kernels::portable> {
  static void record(const launch& l, recording& r) { portable::record_exchange(l, r, library_collective::kind::all_reduce, l.out[0], 1); }
};
template <GpuPrecision P> struct kernel<op::reduce_scatter, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    portable::record_exchange(l, r, library_collective::kind::reduce_scatter, l.out[0], l.constants<op::all_reduce>().ranks);
  }
};
template <GpuPrecision P> struct kernel<op::all_gather_pieces, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    portable::record_exchange(l, r, library_collective::kind::all_gather, l.out[0], l.constants<op::all_reduce>().ranks);
  }
};
template <GpuPrecision P> struct kernel<op::all_gather, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    portable::record_exchange(l, r, library_collective::kind::all_gather, l.out[0], l.constants<op::all_reduce>().ranks, &l.in[0]);
  }
};

}  // namespace isotope::cuda
