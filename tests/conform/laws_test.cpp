// labels: alone
/// Checks the specifications of the library for consistency: every gradient is the derivative of its formula, and every reference obeys its numeric
/// policy.
#include <isotope/conform/adjoint.hpp>
#include <isotope/conform/batch.hpp>
#include <isotope/conform/certificate.hpp>
#include <isotope/conform/compare.hpp>
#include <isotope/conform/enumerate.hpp>
#include <isotope/conform/library_specs.hpp>
#include <isotope/conform/numbers.hpp>
#include <isotope/conform/traced_case.hpp>

#include <gtest/gtest.h>

#include <set>

namespace isotope::conform {
namespace laws_test {

/// Collects the cases of one op that a test needs.
class chosen_cases final : public case_visitor {
 public:
  template <class F> chosen_cases(const spec& s, F&& wanted) : wanted_(wanted) {
    selection all{{&s}, dtype::f32, strength::fast, 1, 1};
    all.blocks = true;
    for_each_case(all, *this);
  }
  bool visit(test_case&& c) override {
    if (wanted_(c)) found.push_back(std::move(c));
    return true;
  }
  std::vector<test_case> found;

 private:
  bool (*wanted_)(const test_case&);
};
std::vector<array> numbers_of(const test_case& c) {
  std::vector<array> all;
  for (std::size_t k = 0; k < c.in.size(); ++k) all.push_back(operand_numbers(c, k));
  return all;
}
call call_of(const test_case& c, const std::vector<array>& numbers) {
  return {numbers, c.attr, c.scalars, {dtype::f32, false, nullptr, c.of->policy}};
}

/// x^2 with a derivative that is wrong by a factor.
struct square_spec {
  static void reference(const call& c, std::span<answer> y) {
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, c.in[0][i] * c.in[0][i]);
  }
};
/// |<dx, u> - <dy, J u>| for dx = `factor` x dy, divided by its bound.
double excess(double factor) {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y"}};
  spec s;
  s.inputs = inputs, s.outputs = outputs, s.reference = &square_spec::reference;
  std::vector<array> x{array(shape{50}, dtype::f32)}, dy{array(shape{50}, dtype::f32)};
  for (std::size_t i = 0; i < 50; ++i) x[0].at[i] = 0.5 + double(i) / 64, dy[0].at[i] = i % 3 == 0 ? -1 : 0.75;
  const attributes none;
  const step_scalars scalars;
  const call at{x, none, scalars, {}};
  const adjoint_law law(s, at, dy, 1);
  std::vector<answer> dx(1);
  dx[0].resize(50);
  for (std::int64_t i = 0; i < 50; ++i) dx[0].set(i, factor * x[0][i] * dy[0][i]);
  const auto side = law.of_answers(dx);
  return std::fabs(side.value - law.along()) / (law.off() + 1e-9 * side.magnitude);
}
TEST(conform_adjoint, takes_the_derivative_and_no_other) {
  EXPECT_LE(excess(2), 1);
  EXPECT_GT(excess(2 + 1e-6), 1);
  EXPECT_GT(excess(-2), 1);
}

TEST(conform_specifications, every_gradient_obeys_the_adjoint_law) {
  std::set<std::string_view> without;
  for (const spec& s : every_spec()) {
    if (s.gradient == nullptr) continue;
    const chosen_cases adjoints(s, [](const test_case& c) { return is_adjoint(c); });
    if (adjoints.found.empty()) without.insert(s.name);
  }
  EXPECT_EQ(without, (std::set<std::string_view>{"cast"}))
      << "ops whose gradient is not compared with differences; the reference of cast rounds";
}
/// How many results of an op were accepted and refused, correct and wrong ones.
struct judged_results {
  int right_refused = 0, asked = 0, passed = 0;
};
/// A mistake: all results have a wrong factor, or the operands of matmuls are rounded to the 10 bits of TF32.
struct mistake {
  double factor = 1;
  bool tf32 = false;
};
double rounded_to_tf32(double x) {
  int exponent;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 11)), exponent - 11);
}
/// For cases with random operands, compares the rounded results of the reference, and those with the mistake if it changes them.
class mistaken_results final : public case_visitor {
 public:
  mistaken_results(dtype program, mistake m) : program_(program), mistake_(m) {}

  bool visit(test_case&& c) override {
    const bool gradient = c.kind == case_kind::gradient;
    std::int64_t elements = 0;
    for (const operand_recipe& x : c.in) elements += x.dims.count();
    if ((!gradient && c.kind != case_kind::forward) || elements > 3000 || !spread(c)) return true;
    const traced_case t = case_tracer::trace_of(c, program_, {});
    if (!t.g.error.empty()) return true;
    of_attention_ = c.of->name == "attention";
    std::vector<array> in = numbers_of(c), dy;
    for (std::size_t k = 0; gradient && k < t.cotangent_dims.size(); ++k) dy.push_back(cotangent_numbers(c, t, k));
    const auto right = answers(c, in, dy);
    auto wrong = right;
    if (mistake_.tf32) {
      for (auto* arrays : {&in, &dy})
        for (array& x : *arrays)
          for (double& v : x.at) v = rounded_to_tf32(v);
      wrong = answers(c, in, dy);
    }
    for (std::size_t k = 0; k < t.out.size(); ++k) {
      const auto is = std::size_t(t.out_is[k]);
      const dtype type = t.g.values[std::size_t(t.out[k])].type;
      judge(right[is], wrong[is].value, type, gradient ? comparison::scaled : c.of->outputs[std::min(is, c.of->outputs.size() - 1)].by,
            {program_, false, nullptr, c.of->policy});
    }
    return true;
  }
  judged_results judged;

 private:
  dtype program_;
  mistake mistake_;
  bool of_attention_ = false;

  std::vector<answer> answers(const test_case& c, const std::vector<array>& in, const std::vector<array>& dy) const {
    const call at{in, c.attr, c.scalars, {program_, false, nullptr, c.of->policy}, c.stream};
    std::vector<answer> e(dy.empty() ? std::size_t(max_outputs) : c.in.size());
    if (dy.empty()) c.of->reference(at, e);
    else c.of->gradient(at, dy, e);
    return e;
  }
  void judge(const answer& e, const std::vector<double>& mistaken, dtype type, comparison by, const conditions& on) {
    answer limited = e;
    limited.nmse = mean_square_limit(e, type, on);
    array right(shape{std::int64_t(e.value.size())}, type), wrong = right;
    double largest = 0, cancelled = 0;
    for (std::size_t i = 0; i < e.value.size(); ++i) {
      right.at[i] = nearest(type, e.value[i]), wrong.at[i] = nearest(type, mistake_.factor * mistaken[i]);
      largest = std::fmax(largest, std::fabs(e.value[i]));
      cancelled = std::fmax(cancelled, e.slack[i]);
    }
    const bool means = by != comparison::exact && is_floating(type);
    const auto of_right = compare(right, limited, by, on, means);
    if (!of_right.passes()) ++judged.right_refused;
    const bool differs = is_floating(type) && largest > 1e-6 && wrong.at != right.at;  // rounding may undo the factor
    const double share = mistake_.tf32 ? 1e-4 : mistake_.factor - 1;
    const bool cancels =
        e.value.size() < 12 && cancelled > share / 5 * largest;  // if there are only a few results, all errors may reach their bounds
    // Gradients of attention start from a rounded y, so in bf16 those that nearly cancel may have a large error; and if a few elements dominate a result, its
    // mean square error says little.
    const bool noisy = of_attention_ && of_right.nmse_limit > share * share / 2;
    if (differs && !cancels && !(type == dtype::bf16 && noisy)) {
      ++judged.asked;
      if (compare(wrong, limited, by, on, means).passes()) ++judged.passed;
    }
  }
};
judged_results judge_results(const spec& s, dtype program, mistake m) {
  mistaken_results v(program, m);
  for_each_case({{&s}, program, strength::fast, 1, 1}, v);
  return v.judged;
}
TEST(conform_specifications, results_times_a_factor_near_one_are_refused) {
  for (const auto& [format, factor] : {std::pair(dtype::f32, 1.0001), std::pair(dtype::bf16, 1.02)})
    for (const spec& s : every_spec()) {
      const judged_results r = judge_results(s, format, {.factor = factor});
      EXPECT_EQ(r.right_refused, 0) << s.name << " in " << name_of(format);
      const bool computes = s.name != "argmax" && s.name != "categorical" && s.name != "equal" && s.name != "less" && s.name != "sample";
      EXPECT_EQ(r.asked > 0, computes) << s.name << " in " << name_of(format);
      EXPECT_EQ(r.passed, 0) << s.name << " in " << name_of(format) << ", of " << r.asked;
    }
}
/// A device that is allowed to may replace f32 matmuls by TF32 ones; that must be noticed.
TEST(conform_specifications, products_and_attention_in_tf32_are_refused_and_attention_in_bf16_by_a_factor_of_1_01) {
  for (const std::string_view op : {"matmul", "attention"}) {
    const judged_results r = judge_results(*find_spec(op), dtype::f32, {.tf32 = true});
    EXPECT_EQ(r.right_refused, 0) << op;
    EXPECT_GT(r.asked, 10) << op;
    EXPECT_EQ(r.passed, 0) << op << ", of " << r.asked;
  }
  const judged_results r = judge_results(*find_spec("attention"), dtype::bf16, {.factor = 1.01});
  EXPECT_GT(r.asked, 10);
  EXPECT_EQ(r.passed, 0) << "of " << r.asked;
}
TEST(conform_specifications, weights_in_blocks_have_whole_blocks_and_run_where_kernels_read_them) {
  const chosen_cases products(
      *find_spec("matmul"), [](const test_case& c) { return c.kind == case_kind::forward && c.in.size() == 2 && in_blocks(c.in[1].type); });
  ASSERT_FALSE(products.found.empty());
  test_case c = products.found[0];
  const std::vector<array> numbers = numbers_of(c);
  array again = numbers[1];
  round_in_blocks(again, c.in[1].order);
  EXPECT_EQ(again.at, numbers[1].at);
  EXPECT_NE(again.at[0], again.at[1]);
  std::array table{kernel_info{.op = &info<op::matmul>, .precision = dtype::f32, .set = "reference"}};
  const auto plan = [&] {
    const traced_case t = case_tracer::trace_of(c, dtype::f32, table);
    EXPECT_TRUE(t.g.error.empty()) << t.g.error.view();
    target_facts toy;
    toy.backend = "toy";
    toy.kernels = table;
    return batch_planner(toy, {}).plan({&t, 1});
  };
  const auto unread = plan();
  ASSERT_FALSE(unread.ok());
  EXPECT_EQ(unread.error().code, errc::missing_feature);
  EXPECT_NE(unread.error().what.find("the kernel of matmul on toy does not read weights in q8_0"), std::string::npos)
      << unread.error().what;
  table[0].reads_blocks = true;
  EXPECT_TRUE(plan().ok());
  c.in[1].dims.set(0, 40), c.in[0].dims.set(1, 40);
  const traced_case odd = case_tracer::trace_of(c, dtype::f32, table);
  EXPECT_TRUE(odd.refused);
  EXPECT_NE(odd.g.error.view().find("[40,16] in q8_0 needs two axes, and rows of whole blocks"), std::string_view::npos)
      << odd.g.error.view();
}
TEST(conform_specifications, the_laws_that_there_are) {
  const auto laws = [](std::string_view op) {
    std::vector<std::string_view> names;
    for (const law& l : find_spec(op)->laws) names.push_back(l.name);
    return names;
  };
  using names = std::vector<std::string_view>;
  EXPECT_EQ(laws("matmul"), (names{"identity", "sum", "transpose", "factor", "blocks", "rows", "adjoint"}));
  EXPECT_EQ(laws("softmax"), (names{"shift", "adjoint"}));
  EXPECT_EQ(laws("cross_entropy"), (names{"shift", "adjoint"}));
  EXPECT_EQ(laws("log_softmax"), (names{"shift", "adjoint"}));
  EXPECT_EQ(laws("layer_norm"), (names{"affine", "sums of gradients", "column sums of gradients", "adjoint"}));
  EXPECT_EQ(laws("attention"), (names{"keys in another order", "tokens in another order", "adjoint"}));
  EXPECT_EQ(laws("fft"), (names{"inverse", "adjoint"}));
  for (const spec& s : every_spec())
    for (std::size_t k = 0; k < s.laws.size(); ++k) {
      static std::int32_t wanted = 0;
      wanted = std::int32_t(k);
      const chosen_cases cases(s, [](const test_case& c) { return c.kind == case_kind::law && c.law == wanted; });
      EXPECT_FALSE(cases.found.empty()) << s.name << ": no case of the law " << s.laws[k].name;
    }
}
/// A backend without plans for several devices is not asked for their ops, and one with a kernel of such an op is.
TEST(conform_specifications, ops_of_meshes_count_where_there_is_a_kernel) {
  const auto all = choose_ops("all"), alone = choose_ops("all", false), named = choose_ops("cross_entropy_part_grad", false);
  ASSERT_TRUE(all.ok() && alone.ok() && named.ok());
  EXPECT_EQ(all->size(), alone->size() + 1);
  EXPECT_EQ(named->size(), 1U);
  counts ran;
  for (const spec* s : *alone) {
    op_counts& t = ran.ops[std::string(s->name)];
    t.passed = t.by_kind[std::size_t(case_kind::gradient)] = 1;
  }
  EXPECT_EQ(coverage_of(ran, {}).least(), 1);
  ran.reached = {"cross_entropy_part_grad"};
  const std::vector<std::string> kernels{"cross_entropy_part_grad"};
  EXPECT_LT(coverage_of(ran, kernels).ops, 1);
  ran.ops["cross_entropy_part_grad"].passed = 1;
  EXPECT_EQ(coverage_of(ran, kernels).least(), 1);
}
TEST(conform_specifications, policies_say_what_references_do) {
  for (const spec& s : every_spec()) {
    EXPECT_TRUE(s.policy.gpu_ulps >= s.policy.cpu_ulps && s.policy.gpu_ulps <= usual_gpu_ulps && s.policy.cpu_ulps <= usual_cpu_ulps)
        << s.name;
    for (const result_role& y : s.outputs)
      EXPECT_FALSE(y.by == comparison::exact && s.policy.elementary()) << s.name << " has elementary functions and is compared bit for bit";
    if (s.policy.nan != "in, then out" || s.inputs.empty()) continue;
    const chosen_cases small(
        s, [](const test_case& c) { return c.kind == case_kind::forward && !c.in.empty() && c.in[0].dims.count() < 500; });
    ASSERT_FALSE(small.found.empty()) << s.name;
    bool seen = false;
    for (const test_case& c : small.found) {
      auto numbers = numbers_of(c);
      for (array& x : numbers)
        if (is_floating(x.type)) x.at.assign(x.at.size(), nan);
      std::array<answer, max_outputs> y;
      s.reference(call_of(c, numbers), y);
      for (const answer& a : y)
        for (const double v : a.value) seen = seen || std::isnan(v);
    }
    EXPECT_TRUE(seen) << s.name << " promises NaN for NaN";
  }
}

}  // namespace laws_test
}  // namespace isotope::conform
