/// The harness must find each planted mistake of a device, and must accept a device without mistakes.
#include "toy.hpp"

namespace runner_test {

using namespace toy;
using conform::case_result, conform::test_case, conform::verdict;

std::string reason_of(mistake m) {
  const auto o = judged(m, {case_of({64}), case_of({5, 7}, 1), case_of({256}, 2)});
  for (const case_result& x : o)
    if (x.is == verdict::failed) return x.reason + ". Fix: " + x.fix;
  return "";
}

TEST(conform_runner, a_device_without_mistakes_passes) { EXPECT_EQ(reason_of(mistake::none), ""); }
TEST(conform_runner, a_wrong_last_bit_is_found) { EXPECT_NE(reason_of(mistake::wrong_element).find("element 63 is "), std::string::npos); }
TEST(conform_runner, nan_never_passes) { EXPECT_NE(reason_of(mistake::not_a_number).find("is nan"), std::string::npos); }
TEST(conform_runner, a_write_past_the_end_is_found) { EXPECT_NE(reason_of(mistake::past_the_end).find("past the end"), std::string::npos); }
TEST(conform_runner, a_changed_operand_is_found) {
  EXPECT_NE(reason_of(mistake::writes_operand).find("changes an operand"), std::string::npos);
}
TEST(conform_runner, other_bits_in_the_second_run_are_found) {
  EXPECT_NE(reason_of(mistake::second_run).find("second run"), std::string::npos);
}
TEST(conform_runner, results_that_depend_on_the_place_are_found) {
  EXPECT_NE(reason_of(mistake::by_position).find("another place"), std::string::npos);
}
TEST(conform_runner, results_that_depend_on_leftovers_are_found) { EXPECT_NE(reason_of(mistake::reads_leftovers), ""); }
TEST(conform_runner, reads_past_the_end_of_an_operand_are_found) {
  EXPECT_NE(reason_of(mistake::reads_past_the_end).find("is nan"), std::string::npos);
}
TEST(conform_runner, every_reason_ends_in_a_fix) { EXPECT_NE(reason_of(mistake::wrong_element).find(". Fix: "), std::string::npos); }

TEST(conform_runner, a_wrong_reference_is_found) {
  conform::spec wrong = *conform::find_spec("twice");
  wrong.reference = [](const conform::call& c, std::span<conform::answer> y) {
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, 2 * c.in[0][i] + 1e-6);
  };
  test_case c = case_of({9});
  c.of = &wrong;
  EXPECT_EQ(judged(mistake::none, {c})[0].is, verdict::failed);
}
TEST(conform_runner, a_reference_of_another_size_is_found) {
  conform::spec wrong = *conform::find_spec("twice");
  wrong.reference = [](const conform::call&, std::span<conform::answer> y) { y[0].resize(3); };
  test_case c = case_of({9});
  c.of = &wrong;
  EXPECT_NE(judged(mistake::none, {c})[0].reason.find("has 9 elements"), std::string::npos);
}
/// The verdict on a correct device under a wrong reference.
template <class Reference> verdict under(Reference, conform::comparison by = conform::comparison::scaled) {
  conform::spec wrong = *conform::find_spec("twice");
  wrong.reference = [](const conform::call& c, std::span<conform::answer> y) {
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, 2 * c.in[0][i]);
    Reference()(c, y[0]);
  };
  const conform::result_role y{"y", conform::holds::floating, by};
  wrong.outputs = {&y, 1};
  test_case c = case_of({9});
  c.of = &wrong;
  return judged(mistake::none, {c})[0].is;
}
TEST(conform_runner, broken_references_are_found) {
  using conform::answer, conform::call;
  EXPECT_EQ(under([](const call&, answer&) {}), verdict::passed);
  EXPECT_EQ(under([](const call& c, answer& y) { y.set(0, 2 * c.in[0][1]); }), verdict::failed) << "off by one element";
  EXPECT_EQ(under([](const call& c, answer& y) { y.set(8, c.in[0][8]); }), verdict::failed) << "another formula at one place";
  EXPECT_EQ(under([](const call&, answer& y) { y.set(4, conform::nan); }), verdict::failed) << "NaN for a number";
  EXPECT_EQ(under([](const call&, answer& y) { y.slack[4] = conform::nan; }), verdict::failed) << "a bound that is NaN";
  EXPECT_EQ(under([](const call&, answer& y) { y.slack[4] = conform::infinity; }), verdict::failed) << "a bound without end";
  EXPECT_EQ(under([](const call& c, answer& y) { y.set(3, std::nextafter(2 * c.in[0][3], 9)); }, conform::comparison::scaled),
            verdict::passed);
}
TEST(conform_runner, outputs_beyond_the_cap_are_refused_with_their_size) {
  const auto o = judged(mistake::none, {case_of({(16 << 20) / 4 + 1}), case_of({3})});
  EXPECT_NE(o[0].reason.find("16777220 bytes"), std::string::npos) << o[0].reason;
  EXPECT_EQ(o[1].is, verdict::passed);
  EXPECT_EQ(judged(mistake::none, {case_of({(16 << 20) / 4})})[0].is, verdict::passed) << "16 MiB are allowed";
}
TEST(conform_runner, operands_that_do_not_fit_never_reach_a_device) {
  conform::spec product = *conform::find_spec("twice");
  product.name = "matmul";
  product.op = &iso::info<iso::op::matmul>;
  product.rules = &iso::rules<iso::op::matmul>;
  const auto judge = [&](conform::case_kind kind, const iso::shape& a, const iso::shape& b) {
    test_case c = case_of(a);
    c.of = &product;
    c.kind = kind;
    c.in.push_back(c.in[0]);
    c.in[1].dims = b;
    toy_device d;
    auto o = conform::batch_runner(d).run({&c, 1});
    EXPECT_TRUE(o.ok());
    EXPECT_EQ(d.loads, 0);
    return o.ok() ? (*o)[0] : case_result{};
  };
  for (const iso::shape& b : {iso::shape{2, 7}, iso::shape{5, 7}}) {  // too few rows, too many
    const case_result o = judge(conform::case_kind::forward, {2, 3}, b);
    EXPECT_EQ(o.is, verdict::failed);
    for (const char* part : {"matmul", "[2,3]", b[0] == 2 ? "[2,7]" : "[5,7]"})
      EXPECT_NE(o.reason.find(part), std::string::npos) << o.reason;
    EXPECT_NE(o.fix, "");
    EXPECT_EQ(judge(conform::case_kind::refusal, {2, 3}, b).is, verdict::passed);
  }
  const case_result accepted = judge(conform::case_kind::refusal, {2, 3}, {3, 7});
  EXPECT_EQ(accepted.is, verdict::failed);
  EXPECT_NE(accepted.reason.find("do not fit were accepted"), std::string::npos) << accepted.reason;
}
/// A device that lacks kernels or memory for some cases, or that fails to load plans which it should load.
class limited_device final : public conform::executor {
 public:
  conform::target_facts facts() const override {
    conform::target_facts f = whole_.facts();
    if (!kernel) f.kernels = std::span(kernels).subspan(3);
    f.tensor_bytes = tensor_bytes;
    return f;
  }
  iso::device_info device() const override { return whole_.device(); }
  iso::result<std::unique_ptr<conform::loaded_batch>> load(iso::dynamic_plan plan, bool perturbed) override {
    if (perturbed && !loads_perturbed)
      return iso::fail(iso::errc::invalid_model, "no order of its steps was found", "toy", "look at the order");
    const bool odd = std::any_of(plan.operands.begin(), plan.operands.end(), [](const iso::operand& x) { return x.dims.count() == 7; });
    if (odd && sevens != iso::errc{}) return iso::fail(sevens, "seven of something", "toy", "take six");
    if (plan.steps.size() > most_steps) return iso::fail(iso::errc::invalid_model, "too many steps", "toy", "take fewer");
    return whole_.load(std::move(plan), perturbed);
  }
  bool kernel = true, loads_perturbed = true;
  std::int64_t tensor_bytes = 0;
  iso::errc sevens{};  // the error of plans with a tensor of 7 elements
  std::size_t most_steps = 1 << 20;

 private:
  toy_device whole_;
};
std::vector<case_result> judged_by(limited_device& d) {
  auto o = conform::batch_runner(d).run(std::vector{case_of({7}), case_of({64}, 1), case_of({300}, 2)});
  EXPECT_TRUE(o.ok());
  return o.ok() ? *o : std::vector<case_result>(3);
}
TEST(conform_runner, a_plan_that_fails_is_a_failure_and_not_unsupported) {
  // An error code alone does not make a case unsupported: the backend must have declared its limit.
  for (const iso::errc code : {iso::errc::invalid_model, iso::errc::missing_feature, iso::errc::over_budget, iso::errc::out_of_memory}) {
    limited_device d;
    d.sevens = code;
    const auto o = judged_by(d);
    EXPECT_EQ(o[0].is, verdict::failed) << name_of(code);
    EXPECT_NE(o[0].reason.find("its plan fails: seven of something"), std::string::npos) << o[0].reason;
    EXPECT_NE(o[0].fix, "");
    EXPECT_EQ(o[1].is, verdict::passed) << "the others run";
    EXPECT_EQ(o[2].is, verdict::passed);
  }
  limited_device d;
  d.loads_perturbed = false;
  for (const case_result& o : judged_by(d)) {
    EXPECT_EQ(o.is, verdict::failed);
    EXPECT_NE(o.reason.find("no order of its steps"), std::string::npos) << o.reason;
    EXPECT_EQ(o.fix, "look at the order");
  }
}
TEST(conform_runner, a_plan_that_fails_for_a_batch_alone_is_a_failure_of_the_batch) {
  limited_device d;
  d.most_steps = 4;  // enough for two cases and the load of the perturbed plan
  const auto o = judged_by(d);
  EXPECT_EQ(o[0].is, verdict::failed);
  EXPECT_NE(o[0].reason.find("its batch of 3 cases fails: too many steps"), std::string::npos) << o[0].reason;
}
TEST(conform_runner, what_a_backend_declares_of_itself_makes_a_case_unsupported) {
  limited_device small;
  small.tensor_bytes = 1000;
  const auto o = judged_by(small);
  EXPECT_EQ(o[0].is, verdict::passed);
  EXPECT_EQ(o[1].is, verdict::passed);
  EXPECT_EQ(o[2].is, verdict::unsupported);
  EXPECT_NE(o[2].reason.find("1000"), std::string::npos) << o[2].reason;
  limited_device bare;
  bare.kernel = false;
  for (const case_result& x : judged_by(bare)) {
    EXPECT_EQ(x.is, verdict::unsupported);
    EXPECT_NE(x.reason.find("no f32 kernel for"), std::string::npos) << x.reason;
  }
}
TEST(conform_runner, a_trace_that_ends_behind_the_op_is_no_refusal_of_the_op) {
  iso::op_rules rules = iso::rules<twice>;
  rules.gradient = [](iso::pullback& g) { g.give(0, matmul(g.dy(), g.dy())); };  // a matmul of vectors, which cannot be planned
  conform::spec of = *conform::find_spec("twice");
  of.rules = &rules;
  test_case c = case_of({9});
  c.of = &of;
  c.kind = conform::case_kind::gradient;
  const case_result broken = judged(mistake::none, {c})[0];
  EXPECT_EQ(broken.is, verdict::failed);
  EXPECT_FALSE(broken.refused);
  EXPECT_NE(broken.reason.find("its trace ends"), std::string::npos) << broken.reason;
  c.in[0].type = iso::dtype::i32;  // the op needs floating-point numbers
  const case_result refused = judged(mistake::none, {c})[0];
  EXPECT_TRUE(refused.refused);
  EXPECT_NE(refused.reason.find("the op refuses its operands"), std::string::npos) << refused.reason;
}
TEST(conform_runner, a_batch_is_one_plan) {
  toy_device d;
  conform::batch_runner r(d);
  std::vector<test_case> cases;
  for (std::uint64_t k = 0; k < 300; ++k) cases.push_back(case_of({3}, k));
  ASSERT_TRUE(r.run(cases).ok());
  EXPECT_EQ(r.counters().batches, 1);
  EXPECT_EQ(r.counters().dispatched, 300);
  EXPECT_EQ(r.counters().submissions, 2);  // the plain plan runs twice
  EXPECT_EQ(d.loads, 2);                   // the plain and the perturbed plan
}

}  // namespace runner_test
