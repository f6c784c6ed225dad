#pragma once
/// Runs the op tests on every kernel set of the cpu backend.
#include <isotope/backend/cpu/thread_pool.hpp>
#include <isotope/kernels/cpu/all.hpp>

namespace isotope::op_test {

/// The kernel that a target with this set runs: that of the set, or of a set that it falls back to.
template <class Op, class P, class Set> struct chosen {
  using type = cpu::kernel<Op, P, kernels::reference>;
};
template <class Op, class P, class Set> requires requires { sizeof(cpu::kernel<Op, P, Set>); } struct chosen<Op, P, Set> {
  using type = cpu::kernel<Op, P, Set>;
};
template <class Op, class P> requires(!requires { sizeof(cpu::kernel<Op, P, kernels::native>); })
struct chosen<Op, P, kernels::native> : chosen<Op, P, kernels::portable> {};

template <class P, class Set> struct on {
  using precision = P;
  using set = Set;
  template <class Op> using kernel = typename chosen<Op, P, Set>::type;
  static constexpr double rounded_weights =
      config::has_bf16_pairs && std::is_same_v<Set, kernels::native> && P::type == dtype::bf16 ? 0x1p-8 : 0;
  static constexpr bool exact = std::is_same_v<Set, kernels::reference> || P::accum_type == dtype::f64;
  template <class Op> static constexpr cpu::block_function code() {
    if constexpr (requires { &kernel<Op>::block; }) return &kernel<Op>::block;
    else return nullptr;
  }
  template <class Op> static constexpr auto entry() { return under_test<Op, kernel<Op>>(&kernel<Op>::run); }
};

inline cpu::view view_of(memory& m, const host& x) { return {m.data(), x.dims, x.strides, x.type}; }
inline cpu::instruction instruction_of(const body_step& b) {
  cpu::instruction i{b.code, {b.what.arg[0], b.what.arg[1], b.what.arg[2]}, 0, b.what.store, b.what.type, b.what.scalar};
  for (auto a : b.what.arg) i.args = std::int8_t(i.args + (a != -1 ? 1 : 0));
  return i;
}

/// `over`: the input whose memory output 0 reuses, or -1.
inline std::vector<host> launch(const kernel_under_test<cpu::launch>& kernel, const std::vector<host>& in, std::vector<host> out,
                                const attributes& a, const settings& s, int over) {
  const op_info& op = *kernel.op;
  std::vector<memory> ins, outs;
  std::vector<cpu::view> in_views, out_views;
  for (const host& x : in) ins.emplace_back(x);
  for (std::size_t k = 0; k < in.size(); ++k) in_views.push_back(view_of(ins[k], in[k]));
  for (std::size_t k = 0; k < out.size(); ++k)
    if (k < s.into.size()) outs.emplace_back(s.into[k]);
    else outs.emplace_back(std::size_t(out[k].span() * size_of(out[k].type)));
  std::vector<int> shared(out.size(), -1);
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (((op.inout >> k) & 1) != 0) shared[k] = int(k);
    else if (k == 0) shared[k] = over;
    out_views.push_back(shared[k] >= 0 ? view_of(ins[std::size_t(shared[k])], out[k]) : view_of(outs[k], out[k]));
  }
  std::vector<shape> in_dims, out_dims;
  for (const host& x : in) in_dims.push_back(x.dims);
  for (const host& x : out) out_dims.push_back(x.dims);
  std::vector<std::vector<std::byte>> before;
  for (memory& m : ins) before.push_back(m.bytes());

  const auto scratch_bytes = std::size_t(kernel.scratch(step_shapes{in_dims, out_dims, &a, s.summed}));
  memory scratch(scratch_bytes);
  std::vector<cpu::instruction> body;
  for (const body_step& b : s.body) body.push_back(instruction_of(b));
  static cpu::thread_pool pool(3);
  cpu::launch l{in_views, out_views, &a, body, scratch.data(), &pool, &s.scalars, s.ordinal, s.accumulate};
  l.out = l.out.first(out_views.size() - (s.summed < 0 ? 0 : 1));
  l.summed = s.summed;
  l.column_sums = s.summed < 0 ? nullptr : &out_views.back();
  l.choices = s.choices;
  kernel.run(l);

  EXPECT_TRUE(scratch.guarded()) << op.name << " writes beyond its scratch of " << scratch_bytes << " bytes";
  for (std::size_t k = 0; k < ins.size(); ++k) {
    EXPECT_TRUE(ins[k].guarded()) << op.name << " writes outside input " << k;
    if (std::find(shared.begin(), shared.end(), int(k)) == shared.end()) {
      EXPECT_EQ(ins[k].bytes(), before[k]) << op.name << " changes input " << k;
    }
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    EXPECT_TRUE(outs[k].guarded()) << op.name << " writes outside output " << k;
    (shared[k] >= 0 ? ins[std::size_t(shared[k])] : outs[k]).read(out[k]);
  }
  return out;
}

using targets =
    boost::mp11::mp_list<on<precision::f32, kernels::reference>, on<precision::bf16, kernels::reference>,
                         on<precision::f64, kernels::reference>, on<precision::f32, kernels::portable>,
                         on<precision::bf16, kernels::portable>, on<precision::f32, kernels::native>, on<precision::bf16, kernels::native>>;
/// How many targets have kernels for all ops: the native set has kernels for few.
inline constexpr std::size_t general_targets = 5;

}  // namespace isotope::op_test
