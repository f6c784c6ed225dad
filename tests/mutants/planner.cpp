/// mutants_planner CHECK...: plans and runs random models with a planner that has a planted bug. Exit code 0: no check finds it, 1: each does, 2: some do.
///
/// verify     the verifier accepts the trace after every pass
/// memory     every operand holds the tensor that the step reads (plan/memory_checker.hpp)
/// results    all options give the same bits as separate steps that keep all activations
/// eager      a plan gives the same bits as its ops run one by one
/// gradients  gradients equal difference quotients
/// mesh       two replicas of two devices, with ZeRO-1, train as one device with all rows does
/// own_op     one model with an op from outside the library, whose gradient rule reads a gradient that it gave, has the bits of separate steps
#include "../dist/training_run.hpp"
#include "../plan/memory_checker.hpp"
#include "../plan/random_gradients.hpp"
#include "../plan/random_options.hpp"
#include "../plan/read_gradient.hpp"
#include "../plan/run_eagerly.hpp"

#include <algorithm>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using namespace plan_test;
using checked = portable_f32;

struct random_program {
  random_model model;
  isotope::training_options options;
  std::string text;  // of both
};
random_program random_programs() {
  using isotope::clipping;
  const auto clip = *rc::gen::element(clipping::global_norm, clipping::tensor_norm, clipping::value, clipping::none);
  const auto variant = *random_variants();
  random_program r{*random_models(), variant.options(clip), {}};
  std::ostringstream text;
  text << variant << ", model " << r.model;
  r.text = text.str();
  return r;
}

std::string trace_fault_of(const random_program& p) {
  return std::string(isotope::plan_detail::trace_training<checked>(p.model, p.options, true).error.view());
}
std::string memory_fault_of(const random_program& p) {
  const auto g = isotope::plan_detail::trace_training<checked>(p.model, p.options, false);
  const auto plan = isotope::freeze(g, isotope::plan_detail::lay_out_for<checked>(g));
  return check_memory(g, plan, isotope::kernel_table<checked>).fault;
}
std::string results_fault_of(const random_program& p) {
  random_variant plain;
  plain.fuse = false;
  plain.pack = 2;
  return difference_kept(two_steps<checked>(p.model, p.options), two_steps<checked>(p.model, plain.options(p.options.clip)));
}
std::string eager_fault_of(const random_program& p) {
  const sized_random_model model{p.model};
  return difference(run_eagerly<reference_f32>(model), run_planned<reference_f32>(model));
}
std::string gradients_fault_of(const random_program& p) { return check_gradients(without_casts(p.model), 1).fault; }
/// The gradients' norms and the losses of three steps on 2 x 2 devices, and on one.
std::string mesh_fault_of(const random_program&) {
  constexpr isotope::model::gpt size{1, 2, 16, 33, 8, 0.2};
  const auto four = dist_test::train_on_mesh<checked>(isotope::model::gpt_loss_of{size, 2, 8}, {dist_test::mesh_of(2, 2, 1), 3});
  const auto one = dist_test::train_on_mesh<checked>(isotope::model::gpt_loss_of{size, 4, 8}, {dist_test::mesh_of(1, 1), 3});
  if (four.losses.size() != 3 || one.losses.size() != 3) return "there is no plan";
  std::ostringstream fault;
  for (std::size_t i = 0; i < 3; ++i) {
    const double loss = std::fabs(four.losses[i] - one.losses[i]), norm = std::fabs(four.norms[i] - one.norms[i]);
    if (!(loss <= 1e-4 * one.losses[i]) || !(norm <= 1e-3 * one.norms[i]))
      fault << "step " << i << " differs by " << loss << " and " << norm << "; ";
  }
  return fault.str();
}
std::string own_op_fault_of(const random_program&) { return difference_of_a_read_gradient(); }

struct check {
  std::string_view name;
  std::string (*fault_of)(const random_program&);
  int models;
};
constexpr check checks[] = {{"verify", &trace_fault_of, 2000},       {"memory", &memory_fault_of, 1000},
                            {"results", &results_fault_of, 1000},    {"eager", &eager_fault_of, 500},
                            {"gradients", &gradients_fault_of, 200}, {"mesh", &mesh_fault_of, 1},
                            {"own_op", &own_op_fault_of, 1}};

/// The fault of the smallest model that shows one; empty: none.
std::string found_by(const check& c) {
  std::string smallest;
  rc::detail::TestParams params;
  params.seed = 20261126;
  params.maxSuccess = c.models;
  params.maxSize = 40;
  const auto property = [&] {
    const auto p = random_programs();
    const auto fault = c.fault_of(p);
    if (!fault.empty()) smallest = fault + " (" + p.text + ')';
    RC_ASSERT(fault == "");
  };
  const auto result = rc::detail::checkTestable(property, rc::detail::TestMetadata{}, params);
  std::ostringstream report;
  rc::detail::printResultMessage(result, report);
  const bool sound = result.template is<rc::detail::SuccessResult>();
  return sound ? "" : smallest.empty() ? report.str() : smallest;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv + 1, std::size_t(argc - 1));
  int finding = 0;
  for (const std::string_view word : words) {
    const auto c = std::find_if(std::begin(checks), std::end(checks), [&](const check& x) { return x.name == word; });
    if (c == std::end(checks)) {
      std::cerr << "no check '" << word << "': verify, memory, results, eager, gradients, mesh, own_op\n";
      return 3;
    }
    const auto found = found_by(*c);
    if (found.empty()) continue;
    ++finding;
    std::cout << "case " << word << ": " << found << '\n';
  }
  std::cout << words.size() << " checks, " << words.size() - std::size_t(finding) << " passed, " << finding << " failed\n";
  return finding == 0 ? 0 : std::size_t(finding) == words.size() ? 1 : 2;
}
