#pragma once
/// Makes one plan of many cases, so that they are dispatched together: their programs are independent, with a guard after every tensor that the host
/// sees.
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../plan/diagnose.hpp"
#include "../plan/dynamic.hpp"
#include "executor.hpp"
#include "traced_case.hpp"

namespace isotope::conform {

/// The position of some bytes in an input or output region.
struct tensor_place {
  std::int64_t at = 0, bytes = 0;
  shape dims;
  dtype type = dtype::f32;
};
struct placed_case {
  std::vector<tensor_place> in, out;
};

/// How a batch is perturbed: no perturbation may change a bit of any result.
struct perturbation {
  bool reversed = false;    // the order of the cases
  int shift = 0;            // blocks of 256 bytes before the first tensor
  bool queue_load = false;  // a matmul whose result nobody reads runs first
  bool fused = false;       // element-wise chains as one step
};

struct planned_batch {
  dynamic_plan plan;
  std::vector<placed_case> cases;  // in the given order
  std::vector<tensor_place> out_guards;
  std::int64_t input_bytes = 0, output_bytes = 0;
};

inline constexpr std::int64_t guard_elems = 64;  // in f32: one block of the layout

class batch_planner {
 public:
  batch_planner(const target_facts& on, perturbation how) : on_(on), how_(how) { g_.program = on.program; }

  /// @error missing_feature (the backend lacks a kernel) and over_budget (a tensor is too large for it), limits that the backend declares;
  ///        invalid_model: the plan is broken
  result<planned_batch> plan(std::span<const traced_case> cases) {
    for (const value_kind k : {value_kind::input, value_kind::output}) {
      const auto v = guard(k);
      (k == value_kind::input ? g_.inputs : g_.outputs).push_back({name("front"), v});
      for (int n = 0; n < how_.shift; ++n) guard(k);
    }
    if (how_.queue_load) load();
    std::vector<std::vector<std::int32_t>> ids(cases.size());
    for (std::size_t n = 0; n < cases.size(); ++n) {
      const std::size_t k = how_.reversed ? cases.size() - 1 - n : n;
      ids[k] = append(cases[k].g);
    }
    fuse(g_, how_.fused, epilogues_of(on_.kernels, on_.program));
    const memory_layout l = lay_out(g_, on_.kernels, on_.chunk_bytes);
    planned_batch b;
    b.plan = freeze(g_, l);
    const auto text = [](const message& m) { return std::string(m.view()); };
    if (!b.plan.error.empty()) return diagnosed(errc::invalid_model, text(b.plan.error));
    if (auto m = missing_kernel(b.plan, on_.backend, on_.kernels, on_.all_kernels); !m.empty())
      return diagnosed(errc::missing_feature, text(m));
    if (auto m = over_tensor_limit(b.plan, on_.backend, on_.tensor_bytes); !m.empty()) return diagnosed(errc::over_budget, text(m));
    if (auto m = unread_blocks(b.plan); !m.empty()) return diagnosed(errc::missing_feature, text(m));
    const auto place = [&](std::int32_t v) {
      const value& x = g_.values[std::size_t(v)];
      return tensor_place{l.at[std::size_t(v)], x.dims.count() * size_of(x.type), x.dims, x.type};
    };
    for (std::size_t k = 0; k < cases.size(); ++k) {
      placed_case p;
      for (const auto v : cases[k].in) p.in.push_back(place(ids[k][std::size_t(v)]));
      for (const auto v : cases[k].out) p.out.push_back(place(ids[k][std::size_t(v)]));
      b.cases.push_back(std::move(p));
    }
    for (const auto v : out_guards_) b.out_guards.push_back(place(v));
    b.input_bytes = l.bytes[std::size_t(value_kind::input)];
    b.output_bytes = l.bytes[std::size_t(value_kind::output)];
    return b;
  }

 private:
  target_facts on_;
  perturbation how_;
  trace g_;
  std::vector<std::int32_t> out_guards_;

  /// Returns which kernel does not read a weight in blocks; empty if all do.
  message unread_blocks(const plan_view& p) const {
    message m;
    for (const step& s : p.steps)
      for (int k = 0; k < s.inputs; ++k)
        if (const dtype type = p.operands[std::size_t(s.operands + k)].type;
            in_blocks(type) && (s.kernel < 0 || !on_.kernels[std::size_t(s.kernel)].reads_blocks))
          return m << "the kernel of " << s.op->name << " on " << on_.backend << " does not read weights in " << name_of(type)
                   << ": use the cpu backend";
    return m;
  }
  std::int32_t guard(value_kind k) {
    const auto v = g_.add_value({guard_elems}, dtype::f32, k);
    if (k == value_kind::output) out_guards_.push_back(v);
    return v;
  }
  /// Appends the values and nodes of one case; returns where its values went.
  std::vector<std::int32_t> append(const trace& one) {
    std::vector<std::int32_t> id(one.values.size());
    const auto first_node = std::int32_t(g_.nodes.size()), first_micro = std::int32_t(g_.micro_ops.size());
    const auto first_late = std::int32_t(g_.late.size());
    g_.late.insert(g_.late.end(), one.late.begin(), one.late.end());
    g_.any_late = g_.any_late || one.any_late;
    const auto moved = [&](std::int32_t v) { return v < 0 ? v : id[std::size_t(v)]; };
    for (std::size_t k = 0; k < one.values.size(); ++k) {
      value v = one.values[k];
      v.base = moved(v.base);  // a view comes after what it views
      if (v.producer >= 0) v.producer += first_node;
      if (v.late >= 0) v.late += first_late;
      id[k] = std::int32_t(g_.values.size());
      g_.values.push_back(v);
      if (v.base < 0 && (v.kind == value_kind::input || v.kind == value_kind::output)) guard(v.kind);
    }
    for (node n : one.nodes) {
      for (auto& v : n.in) v = moved(v);
      for (auto& v : n.out) v = moved(v);
      n.body += first_micro;
      g_.nodes.push_back(n);
    }
    for (std::size_t k = 0; k < one.micro_ops.size(); ++k) g_.add_instruction(one.micro_ops[k], one.micro_rules[k]);
    return id;
  }
  /// Keeps the queue busy with a matmul whose result is an output that may change, like a guard. Does nothing if the backend has no room or no kernel
  /// for it.
  void load() {
    constexpr shape wide{96, 96};
    if (on_.tensor_bytes > 0 && wide.count() * size_of(on_.program) > on_.tensor_bytes) return;
    for (const op_info* op : {&info<op::fill>, &info<op::matmul>})
      if (find_kernel(on_.kernels, op, on_.program) < 0) return;
    tape t(on_.program);
    t.kernels = on_.kernels;
    const auto a = fill(t, wide, on_.program, 0.5);
    const auto y = matmul(a, a);
    if (!t.ok()) return;
    t.g.values[std::size_t(y.id)].kind = value_kind::output;
    t.g.outputs.push_back({name("load"), y.id});
    prune(t.g);
    append(t.g);
  }
};

}  // namespace isotope::conform
