#pragma once
/// Runs one kernel on given numbers, without planner and session. Shapes come from the op's shape rule. Every run
/// checks that nothing outside the outputs was written, and is repeated in place for each input that the kernel declares as safe for that.
#include <isotope/core/step.hpp>
#include <isotope/op/all.hpp>
#include <isotope/plan/choose_kernel.hpp>
#include <isotope/plan/kernels.hpp>

#include <set>
#include <string>

#include "memory.hpp"

namespace isotope::op_test {

/// One instruction of a body, and its code if the backend calls it by address.
struct body_step {
  micro_op what;
  void (*code)(const void* const* in, void* out, std::int64_t n, double scalar) = nullptr;
};

struct settings {
  step_scalars scalars;
  std::uint32_t ordinal = 0;
  std::uint8_t accumulate = 0;
  std::vector<host> into;  // contents of the outputs before the run; empty: NaN
  std::vector<body_step> body;
  std::vector<dtype> body_outputs;    // formats of the outputs that the body stores
  int summed = -1;                    // the output whose column sums are asked for, which become the last output; -1: none are
  kernel_choices* choices = nullptr;  // the variant that is asked for, and what kernels considered; null: nobody asks
};

/// The properties of a kernel that the harness needs. Functions are called by address, so that the harness is not compiled again for each kernel.
template <class Launch, class... More> struct kernel_under_test {
  const op_info* op;
  std::string_view set;   // the kernel's set, which may be one that the target falls back to
  std::uint32_t inplace;  // bit k: output 0 may reuse the memory of input k
  std::int64_t (*scratch)(const step_shapes&);
  void (*run)(const Launch&, More...);
  bool takes_addend = false;
  bool counts_all_elements = false;  // draws by numbers of elements on all devices
  bool (*column_sums)(const step_shapes&, std::span<const micro_op>, int) = nullptr;
  /// Whether the kernel also gives the column sums of output 0, of these outputs.
  bool sums_columns(const std::vector<shape>& out) const { return column_sums != nullptr && column_sums({{}, out, nullptr}, {}, 0); }
};
/// Describes a kernel class that has the function `run` or `record`.
template <class Op, class Kernel, class Launch, class... More>
constexpr kernel_under_test<Launch, More...> under_test(void (*run)(const Launch&, More...)) {
  kernel_under_test<Launch, More...> k{&info<Op>, kernel_traits<Kernel>::set::name, 0, [](const step_shapes&) { return std::int64_t(0); },
                                       run};
  if constexpr (requires { Kernel::inplace; }) k.inplace = Kernel::inplace;
  if constexpr (requires { Kernel::scratch(step_shapes{}); }) k.scratch = &Kernel::scratch;
  if constexpr (requires { Kernel::takes_addend; }) k.takes_addend = Kernel::takes_addend;
  if constexpr (requires { Kernel::counts_all_elements; }) k.counts_all_elements = Kernel::counts_all_elements;
  if constexpr (requires { Kernel::column_sums(step_shapes{}, {}, 0); }) k.column_sums = &Kernel::column_sums;
  return k;
}

}  // namespace isotope::op_test

// tests/<backend>/op/ defines `targets`, the list of targets that the tests run on, each with a precision, a kernel set and the functions kernel<Op>,
// code<Op>() and entry<Op>(), which returns a kernel_under_test; launch(entry, in, out, attributes, settings, over); and `general_targets`, how many of the
// first targets have their own kernels for all ops.
#include <everywhere.hpp>

namespace isotope::op_test {

/// The outputs of an op in a program of `type` by its shape rule, which also fills in attributes.
inline std::vector<host> outputs_of(const op_rules& op, dtype type, const std::vector<host>& in, attributes& a) {
  tape t(type);
  std::vector<std::int32_t> ids;
  for (const host& x : in) {
    ids.push_back(t.g.add_value(x.dims, x.type, value_kind::input));
    t.g.values.back().strides = x.strides;
  }
  t.apply(op, ids, a, place::current());
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
/// Runs a kernel, and again in place of each input whose memory it may reuse.
template <class Kernel>
std::vector<host> launch_twice(const Kernel& kernel, const std::vector<host>& in, const std::vector<host>& out, const attributes& a,
                               const settings& s) {
  if (out.empty()) return out;
  auto result = launch(kernel, in, out, a, s, -1);
  for (std::size_t k = 0; k < in.size(); ++k) {
    const bool fits = in[k].dims == out[0].dims && in[k].type == out[0].type && in[k].dense() && out[0].dense();
    if (!fits || ((kernel.inplace >> k) & 1) == 0) continue;
    const auto again = launch(kernel, in, out, a, s, int(k));
    for (std::size_t j = 0; j < out.size(); ++j) EXPECT_TRUE(same(again[j], result[j].at)) << "output " << j << ", over input " << k;
  }
  return result;
}
/// Runs the kernel of an op that has its own launch, in a program of `type`.
template <class Kernel>
std::vector<host> run_own(const Kernel& kernel, const op_rules& op, dtype type, const std::vector<host>& in, attributes a,
                          const settings& s) {
  // The number of operands before those of the body.
  const int before = s.body.empty() || kernel.op->host_operands == nullptr ? 0 : kernel.op->host_operands(a);
  const std::size_t own = before == 0 ? in.size() : std::size_t(before);
  std::vector<host> out = outputs_of(op, type, {in.begin(), in.begin() + std::ptrdiff_t(own)}, a);
  for (std::size_t k = 0; k < s.body_outputs.size(); ++k) {
    host y = out[0];
    y.type = s.body_outputs[k];
    if (k < out.size()) out[k] = y;
    else out.push_back(y);
  }
  if (s.summed >= 0) out.push_back(full({out[std::size_t(s.summed)].dims.cols()}, accum_of(type), nan));
  return launch_twice(kernel, in, out, a, s);
}
/// Runs an element-wise op as the only instruction of a body.
template <class Kernel>
std::vector<host> run_element_wise(const Kernel& elementwise, body_step step, const op_rules& op, dtype type, const std::vector<host>& in,
                                   attributes a, settings s) {
  const std::vector<host> out = outputs_of(op, type, in, a);
  step.what.type = out.empty() ? type : out[0].type;
  step.what.scalar = a.scalar();
  for (std::size_t k = in.size(); k < 3; ++k) step.what.arg[k] = -1;
  s.body.push_back(step);
  return launch_twice(elementwise, in, out, a, s);
}

/// Calls run(choices) without asking for a variant, and then for each of those that fit. Returns how many did.
template <class Run> int for_each_variant(const Run& run) {
  kernel_choices usual;
  run(usual);
  std::set<std::string> names;
  for (const considered_variant& v : usual.all)
    if (v.unfit.empty()) names.insert(v.name);
  for (const std::string& name : names) {
    kernel_choices asked{.wanted = name};
    run(asked);
    bool taken = false;
    for (const considered_variant& v : asked.all) taken = taken || (v.chosen && v.name == name);
    EXPECT_TRUE(taken) << name;
  }
  return int(names.size());
}

/// The properties of a target that tests depend on.
struct target_under_test {
  std::string_view precision, set;
  dtype type, accum;
  bool exact;              // arithmetic in f64
  double rounded_weights;  // roundoff of attention probabilities
};

/// The results of get(target) for all targets.
template <class Get> constexpr auto of_targets(Get get) {
  return []<class... C>(Get g, boost::mp11::mp_list<C...>) { return std::array{g(C())...}; }(get, targets());
}
inline constexpr auto described_targets = of_targets([]<class C>(C) {
  return target_under_test{C::precision::name, C::set::name, C::precision::type, C::precision::accum_type, C::exact, C::rounded_weights};
});

/// A suite of tests that run on each target; the parameter is the index in the list of targets.
class op_test : public ::testing::TestWithParam<std::size_t>, public target_under_test {
 public:
  op_test() : target_under_test(described_targets[GetParam()]) {}

  /// The error of n successive roundings, relative to the sum of the magnitudes: in f64 for the reference kernels, otherwise in the accumulation
  /// format. Twice the roundoff per operation covers terms of higher order and the test's own arithmetic.
  double roundings(double n) const { return n * 2 * (exact ? 0x1p-53 : 0x1p-24); }

  template <class Op> const auto& kernel() const {
    static constexpr auto kernels = of_targets([](auto c) { return decltype(c)::template entry<Op>(); });
    return kernels[GetParam()];
  }
  template <class Op> std::vector<host> outputs(const std::vector<host>& in, attributes& a) const {
    return outputs_of(rules<Op>, type, in, a);
  }
  template <class Op> std::vector<host> run(const std::vector<host>& in, const attributes& a = {}, const settings& s = {}) const {
    if constexpr (info<Op>.kind == op_kind::elementwise)
      return run_element_wise(kernel<op::elementwise>(), step<Op>({0, 1, 2}, type, 0), rules<Op>, type, in, a, s);
    else return run_own(kernel<Op>(), rules<Op>, type, in, a, s);
  }
  /// Makes one instruction of a body.
  template <class Op> body_step step(std::initializer_list<int> args, dtype t, int store = -1, double scalar = 0) const {
    static constexpr auto codes = of_targets([](auto c) { return decltype(c)::template code<Op>(); });
    body_step i{{&info<Op>, {-1, -1, -1}, std::int8_t(store), t, scalar}, codes[GetParam()]};
    std::size_t k = 0;
    for (int x : args) i.what.arg[k++] = std::int8_t(x);
    return i;
  }
};
inline std::string target_name(const ::testing::TestParamInfo<std::size_t>& i) {
  return std::string(described_targets[i.param].precision) + "_" + std::string(described_targets[i.param].set);
}
inline auto everywhere() { return ::testing::Range(std::size_t(0), general_targets); }
/// The two targets of the native set.
inline auto on_native() {
  constexpr auto all = boost::mp11::mp_size<targets>::value;
  return ::testing::Range(all - 2, all);
}
inline auto everywhere_with_native() { return ::testing::Range(std::size_t(0), boost::mp11::mp_size<targets>::value); }

}  // namespace isotope::op_test
