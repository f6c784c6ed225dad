#pragma once
/// Collectives: the communicator of the group does the work, on the thread that runs the plan. Without a communicator the group has one rank.
#include <cstring>

#include <isotope/backend/cpu/collective_run.hpp>
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/all_gather.hpp>
#include <isotope/op/reduce_scatter.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {

inline std::span<std::byte> bytes_of(const view& x) { return {x.as<std::byte>(), std::size_t(x.dims.count() * size_of(x.type))}; }
/// Calls exchange(communicator) for the group of a launch, and keeps the failure. Returns whether there is one.
template <class Exchange> bool with_group(const launch& l, const Exchange& exchange) {
  communicator* c = l.ranks == nullptr ? nullptr : l.ranks->of(l.constants<op::all_reduce>().which());
  if (c == nullptr) return false;
  if (auto r = exchange(*c); !r) l.ranks->failed(r.error());
  return true;
}
/// The piece of this rank.
inline std::span<std::byte> own_piece(std::span<std::byte> x, const communicator& c) {
  const std::size_t n = x.size() / std::size_t(c.ranks());
  return x.subspan(n * std::size_t(c.rank()), n);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::all_reduce, P, kernels::reference> {
  static void run(const launch& l) {
    const auto x = reference::bytes_of(l.out[0]);
    reference::with_group(l, [&](communicator& c) { return c.all_reduce(x, l.out[0].type, reduction::sum); });
  }
};
template <class P> struct kernel<op::all_gather, P, kernels::reference> {
  static void run(const launch& l) {
    const auto x = reference::bytes_of(l.in[0]), y = reference::bytes_of(l.out[0]);
    if (!reference::with_group(l, [&](communicator& c) { return c.all_gather(x, y); })) std::memcpy(y.data(), x.data(), x.size());
  }
};
template <class P> struct kernel<op::all_gather_pieces, P, kernels::reference> {
  static void run(const launch& l) {
    const auto x = reference::bytes_of(l.out[0]);
    reference::with_group(l, [&](communicator& c) { return c.all_gather(reference::own_piece(x, c), x); });
  }
};
template <class P> struct kernel<op::reduce_scatter, P, kernels::reference> {
  static void run(const launch& l) {
    const auto x = reference::bytes_of(l.out[0]);
    reference::with_group(l,
                          [&](communicator& c) { return c.reduce_scatter(x, reference::own_piece(x, c), l.out[0].type, reduction::sum); });
  }
};

}  // namespace isotope::cpu
