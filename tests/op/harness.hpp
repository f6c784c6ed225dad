#pragma once
/// Runs one kernel on given numbers, without planner or executor: shapes by the op's own rule, views and launch by hand. Every run
/// checks that nothing outside the outputs was written, and repeats itself in place wherever the kernel says that this is safe.
#include <isotope/backend/cpu/thread_pool.hpp>
#include <isotope/kernels/cpu/all.hpp>
#include <isotope/kernels/reference/all.hpp>
#include <isotope/op/all.hpp>
#include <isotope/op/update.hpp>

#include "memory.hpp"

namespace isotope::op_test {

/// A precision and the kernel set under test.
template <class P, class Set> struct on {
  using precision = P;
  using set = Set;
};
using everywhere =
    ::testing::Types<on<precision::f32, kernels::reference>, on<precision::bf16, kernels::reference>,
                     on<precision::f64, kernels::reference>, on<precision::f32, kernels::portable>, on<precision::bf16, kernels::portable>>;

/// The kernel that a target with this set runs: the set's own, or the reference where it has none.
template <class Op, class P, class Set> struct chosen {
  using type = cpu::kernel<Op, P, kernels::reference>;
};
template <class Op, class P, class Set> requires requires { sizeof(cpu::kernel<Op, P, Set>); } struct chosen<Op, P, Set> {
  using type = cpu::kernel<Op, P, Set>;
};

struct settings {
  step_scalars scalars;
  std::uint32_t ordinal = 0;
  std::uint8_t accumulate = 0;
  std::vector<host> into;  // what outputs hold before the run; none: NaN
  std::vector<cpu::instruction> body;
  std::vector<dtype> body_outputs;  // formats of the outputs that the body stores
};

template <class C> class op_test : public ::testing::Test {
 public:
  using P = typename C::precision;
  template <class Op> using kernel = typename chosen<Op, P, typename C::set>::type;
  static constexpr dtype type = P::type, accum = P::accum_type;
  static constexpr bool exact = std::is_same_v<typename C::set, kernels::reference> || accum == dtype::f64;
  /// Error of n roundings in a row, relative to the sum of the magnitudes: in f64 for the reference kernels, else in the accumulation
  /// format; twice the roundoff per operation covers the higher-order terms and the test's own arithmetic.
  static double roundings(double n) { return n * 2 * (exact ? 0x1p-53 : 0x1p-24); }

  /// The outputs of Op, by the shape rule, and the attributes that the rule fills in.
  template <class Op> static std::vector<host> outputs(const std::vector<host>& in, attributes& a) {
    tape t(P::type);
    std::vector<std::int32_t> ids;
    for (const host& x : in) {
      ids.push_back(t.g.add_value(x.dims, x.type, value_kind::input));
      t.g.values.back().strides = x.strides;
    }
    t.apply(info<Op>, ids, a, place::current());
    EXPECT_TRUE(t.ok()) << std::string(t.g.error.view());
    EXPECT_EQ(t.g.nodes.size(), t.ok() ? 1u : 0u) << "the kernel does not read these strides";
    std::vector<host> out;
    if (t.g.nodes.size() != 1) return out;
    a = t.g.nodes[0].attr;
    for (int k = 0; k < t.g.nodes[0].outputs(); ++k) {
      const value& v = t.describe(t.g.nodes[0].out[std::size_t(k)]);
      out.push_back(full(v.dims, v.type, nan));
      out.back().strides = v.strides;
    }
    return out;
  }

  template <class Op> static std::vector<host> run(std::vector<host> in, attributes a = {}, settings s = {}) {
    if constexpr (info<Op>.kind == op_kind::elementwise) {
      std::vector<host> out = outputs<Op>(in, a);
      cpu::instruction i{&kernel<Op>::block, {0, 1, 2}, std::int8_t(in.size()), 0, out.empty() ? type : out[0].type, a.f[0]};
      s.body.push_back(i);
      return launch_twice<op::elementwise>(std::move(in), std::move(out), a, s);
    } else {
      std::vector<host> out = outputs<Op>({in.begin(), in.begin() + std::ptrdiff_t(own_operands<Op>(in.size(), a, s))}, a);
      for (std::size_t k = 0; k < s.body_outputs.size(); ++k) {
        host y = out[0];
        y.type = s.body_outputs[k];
        if (k < out.size()) out[k] = y;
        else out.push_back(y);
      }
      return launch_twice<Op>(std::move(in), std::move(out), a, s);
    }
  }

  /// One instruction of a body by hand.
  template <class Op> static cpu::instruction step(std::initializer_list<int> args, dtype t, int store = -1, double scalar = 0) {
    cpu::instruction i{&kernel<Op>::block, {-1, -1, -1}, std::int8_t(args.size()), std::int8_t(store), t, scalar};
    int k = 0;
    for (int x : args) i.arg[k++] = std::int8_t(x);
    return i;
  }

 private:
  template <class Op> static std::size_t own_operands(std::size_t given, const attributes& a, const settings& s) {
    return s.body.empty() || a.i[1] == 0 ? given : std::size_t(a.i[1]);
  }
  template <class Op>
  static std::vector<host> launch_twice(std::vector<host> in, std::vector<host> out, const attributes& a, const settings& s) {
    if (out.empty()) return out;
    const auto result = launch<Op>(in, out, a, s, -1);
    if constexpr (requires { kernel<Op>::inplace; }) {
      for (std::size_t k = 0; k < in.size(); ++k) {
        const bool fits = in[k].dims == out[0].dims && in[k].type == out[0].type && in[k].dense() && out[0].dense();
        if (fits && ((kernel<Op>::inplace >> k) & 1) != 0) {
          const auto again = launch<Op>(in, out, a, s, int(k));
          for (std::size_t j = 0; j < out.size(); ++j) EXPECT_TRUE(same(again[j], result[j].at)) << "output " << j << ", over input " << k;
        }
      }
    }
    return result;
  }
  /// `over`: the input whose bytes output 0 takes, or -1.
  template <class Op>
  static std::vector<host> launch(const std::vector<host>& in, std::vector<host> out, const attributes& a, const settings& s, int over) {
    constexpr op_info op = info<Op>;
    std::vector<memory> ins, outs;
    std::vector<cpu::view> in_views, out_views;
    for (const host& x : in) ins.emplace_back(x);
    for (std::size_t k = 0; k < in.size(); ++k) in_views.push_back(ins[k].view(in[k]));
    for (std::size_t k = 0; k < out.size(); ++k)
      if (k < s.into.size()) outs.emplace_back(s.into[k]);
      else outs.emplace_back(std::size_t(out[k].span() * size_of(out[k].type)));
    std::vector<int> shared(out.size(), -1);
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (((op.inout >> k) & 1) != 0) shared[k] = int(k);
      else if (k == 0) shared[k] = over;
      out_views.push_back(shared[k] >= 0 ? ins[std::size_t(shared[k])].view(out[k]) : outs[k].view(out[k]));
    }
    std::vector<shape> in_dims, out_dims;
    for (const host& x : in) in_dims.push_back(x.dims);
    for (const host& x : out) out_dims.push_back(x.dims);
    std::vector<std::vector<std::byte>> before;
    for (memory& m : ins) before.push_back(m.bytes());

    std::size_t scratch_bytes = 0;
    if constexpr (requires { kernel<Op>::scratch(step_shapes{}); })
      scratch_bytes = std::size_t(kernel<Op>::scratch(step_shapes{in_dims, out_dims, &a}));
    memory scratch(scratch_bytes);
    static cpu::thread_pool pool(3);
    cpu::launch l{in_views, out_views, &a, s.body, scratch.data(), &pool, &s.scalars, s.ordinal, s.accumulate};
    kernel<Op>::run(l);

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
};

}  // namespace isotope::op_test
