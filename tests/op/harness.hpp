#pragma once
/// Runs one kernel on given numbers, without planner or executor: shapes by the op's own rule, memory and launch by hand. Every run
/// checks that nothing outside the outputs was written, and repeats itself in place wherever the kernel says that this is safe.
#include <isotope/core/scalars.hpp>
#include <isotope/op/all.hpp>
#include <isotope/op/update.hpp>

#include "memory.hpp"

namespace isotope::op_test {

/// One instruction of a body, and its code where the backend calls it by address.
struct body_step {
  micro what;
  void (*code)(const void* const* in, void* out, std::int64_t n, double scalar) = nullptr;
};

struct settings {
  step_scalars scalars;
  std::uint32_t ordinal = 0;
  std::uint8_t accumulate = 0;
  std::vector<host> into;  // what outputs hold before the run; none: NaN
  std::vector<body_step> body;
  std::vector<dtype> body_outputs;  // formats of the outputs that the body stores
};

}  // namespace isotope::op_test

// tests/op/on_<backend>/: `everywhere`, the list of what the tests run on, each with a precision, a kernel set and the functions
// kernel<Op>, code<Op>(), launch<Op>(in, out, attributes, settings, over).
#include <everywhere.hpp>

namespace isotope::op_test {

template <class C> class op_test : public ::testing::Test {
 public:
  using P = typename C::precision;
  template <class Op> using kernel = typename C::template kernel<Op>;
  static constexpr dtype type = P::type, accum = P::accum_type;
  static constexpr bool exact = C::exact;                        // arithmetic in f64
  static constexpr double rounded_weights = C::rounded_weights;  // roundoff of attention's probabilities
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
      s.body.push_back(step<Op>({0, 1, 2}, out.empty() ? type : out[0].type, 0, a.f[0]));
      for (std::size_t k = in.size(); k < 3; ++k) s.body.back().what.arg[k] = -1;
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
  template <class Op> static body_step step(std::initializer_list<int> args, dtype t, int store = -1, double scalar = 0) {
    body_step i{{&info<Op>, {-1, -1, -1}, std::int8_t(store), t, scalar}, C::template code<Op>()};
    std::size_t k = 0;
    for (int x : args) i.what.arg[k++] = std::int8_t(x);
    return i;
  }

 private:
  template <class Op> static std::size_t own_operands(std::size_t given, const attributes& a, const settings& s) {
    return s.body.empty() || a.i[1] == 0 ? given : std::size_t(a.i[1]);
  }
  template <class Op>
  static std::vector<host> launch_twice(std::vector<host> in, std::vector<host> out, const attributes& a, const settings& s) {
    if (out.empty()) return out;
    const auto result = C::template launch<Op>(in, out, a, s, -1);
    if constexpr (requires { kernel<Op>::inplace; }) {
      for (std::size_t k = 0; k < in.size(); ++k) {
        const bool fits = in[k].dims == out[0].dims && in[k].type == out[0].type && in[k].dense() && out[0].dense();
        if (fits && ((kernel<Op>::inplace >> k) & 1) != 0) {
          const auto again = C::template launch<Op>(in, out, a, s, int(k));
          for (std::size_t j = 0; j < out.size(); ++j) EXPECT_TRUE(same(again[j], result[j].at)) << "output " << j << ", over input " << k;
        }
      }
    }
    return result;
  }
};

}  // namespace isotope::op_test
