#pragma once
/// What a device computes, in sixteen digits: changes with its driver, its arithmetic and its kernels.
#include <string>

#include "batch.hpp"
#include "numbers.hpp"
#include "registry.hpp"

namespace isotope::conform {

/// The hash of the bits of one pass of every element-wise op of one operand over awkward numbers, which round differently from one implementation of
/// exp, log or tanh to the next, and of a product. @error as executor::load
inline result<std::string> fingerprint_of(executor& on) {
  const target_facts f = on.facts();
  std::vector<test_case> cases;
  for (const spec& s : every_spec()) {
    if (s.op->kind != op_kind::elementwise || s.inputs.size() != 1) continue;
    test_case c;
    c.of = &s;
    c.seed = 1;
    c.attr.f[0] = 0.1;
    c.in = {{{1024}, f.program, &generator_of<generators::exponents>, -6, 4, row_major}};
    cases.push_back(c);
  }
  std::vector<traced_case> traced;
  for (const test_case& c : cases) traced.push_back(case_tracer::trace_of(c, f.program, f.kernels));
  auto plan = batch_planner(f, {}).plan(traced);
  if (!plan) return plan.error();
  auto loaded = on.load(std::move(plan->plan), false);
  if (!loaded) return loaded.error();
  for (std::size_t k = 0; k < cases.size(); ++k)
    write_numbers(operand_numbers(cases[k], 0), row_major, (*loaded)->inputs().data() + plan->cases[k].in[0].at);
  if (auto r = (*loaded)->run({}); !r) return r.error();
  const auto bytes = (*loaded)->outputs();
  stable_hash h;
  const device_info d = on.device();
  h.add(d.name).add(d.driver).add(f.set);
  for (const auto& fact : d.facts) h.add(fact.name).add(fact.value);
  for (const placed_case& p : plan->cases)
    h.add(std::string_view(reinterpret_cast<const char*>(bytes.data()) + p.out[0].at, std::size_t(p.out[0].bytes)));
  return std::string(hex_text(h.value()).view());
}

}  // namespace isotope::conform
