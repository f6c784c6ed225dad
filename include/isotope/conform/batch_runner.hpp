#pragma once
/// Runs each batch twice over differently poisoned memory and once perturbed: results must be bit-identical, guards intact and operands unchanged.
/// Then it compares each result with the reference.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "adjoint.hpp"
#include "case_result.hpp"
#include "counts.hpp"
#include "numbers.hpp"

namespace isotope::conform {

inline constexpr std::int64_t output_cap_bytes = 16 << 20;  // of one case

/// Judges results by something other than the op's reference: for cases made elsewhere.
class case_judge {
 public:
  virtual ~case_judge() = default;
  /// `got` holds the results or gradients in the order of t.out_is; `numbers` holds the operands, then the cotangents.
  virtual void judge(const test_case& c, const traced_case& t, std::span<const array> numbers, std::span<const array> got,
                     const conditions& on, case_result& o) = 0;
};

struct runner_options {
  bool perturbed = true;
  case_judge* judge = nullptr;
};
struct runner_counters {
  std::int64_t batches = 0, dispatched = 0, submissions = 0;  // submissions of plain runs: two per batch
  void add(const runner_counters& o) {
    batches += o.batches;
    dispatched += o.dispatched;
    submissions += o.submissions;
  }
};

class batch_runner {
 public:
  batch_runner(executor& on, runner_options o = {}) : on_(on), facts_(on.facts()), options_(o) {}

  /// Returns one case_result per case. All cases must have the same step scalars. @error device_lost, timeout: nothing can run any more
  result<std::vector<case_result>> run(std::span<const test_case> cases) {
    std::vector<case_result> out(cases.size());
    std::vector<std::size_t> runnable;
    traced_.assign(cases.size(), {});
    for (std::size_t k = 0; k < cases.size(); ++k) {
      traced_[k] = case_tracer::trace_of(cases[k], facts_.program, facts_.kernels);
      if (before_dispatch(cases[k], traced_[k], out[k])) runnable.push_back(k);
    }
    if (auto r = attempt(cases, runnable, out); !r) return r.error();
    return out;
  }
  const runner_counters& counters() const { return counters_; }
  /// The ops of all kernels and body instructions that ran.
  const std::set<std::string_view>& reached() const { return reached_; }
  /// Kernel sets and shaders that ran, by op, including reasons for fall-throughs.
  const std::set<std::string>& tiers() const { return tiers_; }
  const std::map<std::string, launch_counts>& launches() const { return launches_; }
  /// Variants of kernels that ran, op[kernel set] or op[kernel set:shader], each with a digest of the shader; empty if there is none.
  const std::map<std::string, std::string>& variants() const { return variants_; }

 private:
  executor& on_;
  target_facts facts_;
  runner_options options_;
  runner_counters counters_;
  std::set<std::string_view> reached_;
  std::set<std::string> tiers_;
  std::map<std::string, launch_counts> launches_;
  std::map<std::string, std::string> variants_;
  std::set<std::string> batch_variants_;  // of the batch that ran last
  std::vector<traced_case> traced_;
  input_image image_;
  bool declared_ = false;  // whether the last plan failed at a limit that the backend declares

  /// Judges what needs no device; returns whether the case must run.
  static bool before_dispatch(const test_case& c, const traced_case& t, case_result& o) {
    const std::string error(t.g.error.view());
    if (c.kind == case_kind::refusal) {
      if (error.empty()) o = failed_because("operands that do not fit were accepted", "let the op's shape rule refuse them");
      else if (error.find(std::string(c.of->name)) == error.npos || error.find('[') == error.npos)
        o = failed_because("the refusal names not op and shapes: " + error, "use shape_rule::require");
      return false;
    }
    if (!error.empty()) {
      o = t.refused ? failed_because("the op refuses its operands: " + error, "correct the case or the shape rule")
                    : failed_because("its trace ends: " + error, "correct the gradient rule, or what replaces the op");
      o.refused = t.refused;
      return false;
    }
    std::int64_t bytes = 0;
    for (const auto v : t.out) bytes += t.g.values[std::size_t(v)].dims.count() * size_of(t.g.values[std::size_t(v)].type);
    if (bytes > output_cap_bytes) {
      o = failed_because("its outputs have " + std::to_string(bytes) + " bytes, a case may have " + std::to_string(output_cap_bytes),
                         "use smaller shapes");
      return false;
    }
    return true;
  }

  static bool device_is_gone(const failure& f) { return f.code == errc::device_lost || f.code == errc::timeout; }

  /// Runs the chosen cases together. If they cannot run, it runs each half separately, down to the case that is the cause. A limit that the backend
  /// declares makes a case unsupported; every other plan that cannot be made, loaded or run is a failure.
  result<void> attempt(std::span<const test_case> cases, const std::vector<std::size_t>& chosen, std::vector<case_result>& out) {
    if (chosen.empty()) return {};
    auto r = together(cases, chosen, out);
    if (r) return r;
    if (device_is_gone(r.error())) return r;
    const failure why = r.error();
    if (chosen.size() == 1) {
      if (declared_) out[chosen[0]] = unsupported_because(why.what, why.fix);
      else blame(out[chosen[0]], "its plan fails: " + why.what, why.fix.empty() ? "plan the case by itself with replay" : why.fix);
      return {};
    }
    const bool by_size = declared_ || why.code == errc::out_of_memory || why.code == errc::over_budget;
    const auto half = chosen.begin() + std::ptrdiff_t(chosen.size() / 2);
    if (auto a = attempt(cases, {chosen.begin(), half}, out); !a) return a;
    if (auto b = attempt(cases, {half, chosen.end()}, out); !b) return b;
    if (!by_size && std::all_of(chosen.begin(), chosen.end(), [&](std::size_t k) { return out[k].is == verdict::passed; }))
      blame(out[chosen[0]], "the plan of its batch of " + std::to_string(chosen.size()) + " cases fails: " + why.what,
            "run the cases one by one with --batch 1: each passes by itself");
    return {};
  }

  result<void> together(std::span<const test_case> cases, const std::vector<std::size_t>& chosen, std::vector<case_result>& out) {
    std::vector<traced_case> some;
    if (chosen.size() != traced_.size())
      for (const auto k : chosen) some.push_back(traced_[k]);
    const std::span<const traced_case> traced = some.empty() ? std::span<const traced_case>(traced_) : some;
    std::vector<std::vector<array>> numbers(chosen.size());
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      const test_case& c = cases[chosen[n]];
      numbers[n].reserve(c.in.size() + traced[n].cotangent_dims.size());
      for (std::size_t k = 0; k < c.in.size(); ++k) numbers[n].push_back(operand_numbers(c, k));
      for (std::size_t k = 0; k < traced[n].cotangent_dims.size(); ++k) numbers[n].push_back(cotangent_numbers(c, traced[n], k));
    }
    auto plain = batch_planner(facts_, {}).plan(traced);
    declared_ = !plain && (plain.error().code == errc::missing_feature || plain.error().code == errc::over_budget);
    if (!plain) return plain.error();
    std::vector<std::byte> first;
    batch_variants_.clear();
    if (auto r = run_plain(cases, chosen, *plain, numbers, first, out); !r) return r;
    for (int k = 0; options_.perturbed && k < on_.perturbations(); ++k)
      if (auto r = run_perturbed(cases, chosen, traced, *plain, numbers, first, out); !r) return r;
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      case_result& o = out[chosen[n]];
      judge(cases[chosen[n]], traced[n], plain->cases[n], numbers[n], first, o);
      if (o.is == verdict::failed) o.variants = variants_of(traced[n]);
    }
    return {};
  }
  /// Returns the variants of the last batch that belong to the ops of a case.
  std::set<std::string> variants_of(const traced_case& t) const {
    std::set<std::string> mine;
    for (const std::string& v : batch_variants_) {
      const auto op = std::string_view(v).substr(0, v.find('['));
      if (std::any_of(t.g.nodes.begin(), t.g.nodes.end(),
                      [&](const node& n) { return n.op->name == op || (op == "elementwise" && n.op->kind == op_kind::elementwise); }))
        mine.insert(v);
    }
    return mine;
  }

  static bool same_bits(const tensor_place& a, const std::byte* in_a, const tensor_place& b, const std::byte* in_b) {
    return a.bytes == 0 || std::memcmp(in_a + a.at, in_b + b.at, std::size_t(a.bytes)) == 0;
  }
  static void blame(case_result& o, std::string reason, std::string fix) {
    if (o.is != verdict::failed) o = failed_because(std::move(reason), std::move(fix));
  }
  void blame_all(const std::vector<std::size_t>& chosen, std::vector<case_result>& out, const std::string& reason, const std::string& fix) {
    for (const auto k : chosen) blame(out[k], reason, fix);
  }

  result<void> run_plain(std::span<const test_case> cases, const std::vector<std::size_t>& chosen, planned_batch& b,
                         const std::vector<std::vector<array>>& numbers, std::vector<std::byte>& first, std::vector<case_result>& out) {
    for (const auto& s : b.plan.steps) {
      if (s.kernel >= 0)
        batch_variants_.insert(std::string(s.op->name) + "[" + std::string(facts_.kernels[std::size_t(s.kernel)].set) + "]");
      reached_.insert(s.op->name);
      for (int k = 0; k < s.body_size; ++k) reached_.insert(b.plan.micro_ops[std::size_t(s.body + k)].op->name);
    }
    auto loaded = on_.load(std::move(b.plan), false);
    if (!loaded) return loaded.error();
    input_image& in = image_;
    in.fill(cases, chosen, b, numbers);
    for (const int turn : {0, 1}) {
      const std::byte leftovers{static_cast<unsigned char>(turn == 0 ? 0xff : 0x3f)};  // NaN, then numbers near 1
      std::memcpy((*loaded)->inputs().data(), in.bytes.data(), in.bytes.size());
      if (auto r = (*loaded)->poison(leftovers); !r) return r;
      if (auto r = (*loaded)->run(cases[chosen[0]].scalars); !r) return r;
      const auto bytes = (*loaded)->outputs();
      const auto untouched = [&](std::int64_t from, std::int64_t to) {
        const std::byte* p = bytes.data() + from;  // each byte equals the one before it
        return from >= to || (*p == leftovers && std::memcmp(p, p + 1, std::size_t(to - from - 1)) == 0);
      };
      for (const tensor_place& g : b.out_guards)
        if (!untouched(g.at, g.at + g.bytes)) blame_owner(b, g, chosen, out);
      for (std::size_t n = 0; n < chosen.size(); ++n)  // includes the rest of an output's last block
        for (const tensor_place& p : b.cases[n].out)
          if (!untouched(p.at + p.bytes, (p.at + p.bytes + block_bytes - 1) / block_bytes * block_bytes))
            blame(out[chosen[n]], "writes past the end of an output", "check the kernel's last tile against the sizes");
      if (std::memcmp((*loaded)->inputs_after().data(), in.bytes.data(), in.bytes.size()) != 0)
        blame_writer(b, in, (*loaded)->inputs_after(), chosen, out);
      if (turn == 0) {
        first.assign(bytes.begin(), bytes.end());
        continue;
      }
      for (std::size_t n = 0; n < chosen.size(); ++n)
        for (const tensor_place& p : b.cases[n].out)
          if (!same_bits(p, first.data(), p, bytes.data()))
            blame(out[chosen[n]], "gives other bits in its second run", "look for memory that is read before it is written, and for races");
    }
    ++counters_.batches;
    counters_.dispatched += std::int64_t(chosen.size());
    counters_.submissions += (*loaded)->submissions();
    if (!(*loaded)->tiers().empty()) batch_variants_.clear();  // the backend's own record overrides the plan's
    count_launches(**loaded);
    for (const std::string& v : batch_variants_) variants_.try_emplace(v);
    return {};
  }
  void count_launches(const loaded_batch& b) {
    for (const step_tier& t : b.tiers()) {
      const std::string set(t.set), shader(t.shader);
      const std::string variant = (t.op.empty() ? shader : std::string(t.op)) + "[" + set + ":" + shader + "]";
      batch_variants_.insert(variant);
      if (t.digest != 0) variants_[variant] = hex_text(t.digest).view();
      tiers_.insert(set + ":" + shader + (t.reason.empty() ? "" : ", not a better set: " + std::string(t.reason)));
      if (t.launch == 0) continue;
      launch_counts& l = launches_[set + ":" + (t.op.empty() ? shader : std::string(t.op))];
      l.ran.insert(t.launch);
      l.all.insert(t.launch);
      l.all.insert(t.launch_sizes.begin(), t.launch_sizes.end());
    }
  }
  /// Returns the tensor before a guard that was overwritten.
  void blame_owner(const planned_batch& b, const tensor_place& guard, const std::vector<std::size_t>& chosen,
                   std::vector<case_result>& out) {
    for (std::size_t n = 0; n < chosen.size(); ++n)
      for (const tensor_place& p : b.cases[n].out)
        if (p.at <= guard.at && guard.at - (p.at + p.bytes) < 256)
          return blame(out[chosen[n]], "writes past the end of an output", "check the kernel's last tile against the sizes");
    blame_all(chosen, out, "some case of the batch writes before its outputs", "run the cases one by one with --batch 1");
  }
  void blame_writer(const planned_batch& b, const input_image& before, std::span<const std::byte> after,
                    const std::vector<std::size_t>& chosen, std::vector<case_result>& out) {
    for (std::size_t n = 0; n < chosen.size(); ++n)
      for (const tensor_place& p : b.cases[n].in)
        if (!same_bits(p, before.bytes.data(), p, after.data()))
          return blame(out[chosen[n]], "changes an operand", "operands are read only");
    blame_all(chosen, out, "some case of the batch writes between the operands", "run the cases one by one with --batch 1");
  }

  /// Runs with other offsets, another order, another number of threads or size of workgroups, a busy queue and fusion: the bits must be the same.
  result<void> run_perturbed(std::span<const test_case> cases, const std::vector<std::size_t>& chosen, std::span<const traced_case> traced,
                             const planned_batch& plain, const std::vector<std::vector<array>>& numbers,
                             const std::vector<std::byte>& first, std::vector<case_result>& out) {
    auto b = batch_planner(facts_, {.reversed = true, .shift = 3, .queue_load = true, .fused = true}).plan(traced);
    if (!b) return b.error();
    auto loaded = on_.load(std::move(b->plan), true);
    if (!loaded) return loaded.error();
    input_image& in = image_;
    in.fill(cases, chosen, *b, numbers);
    std::memcpy((*loaded)->inputs().data(), in.bytes.data(), in.bytes.size());
    if (auto r = (*loaded)->poison(std::byte{0xff}); !r) return r;
    if (auto r = (*loaded)->run(cases[chosen[0]].scalars); !r) return r;
    const auto bytes = (*loaded)->outputs();
    for (std::size_t n = 0; n < chosen.size(); ++n)
      for (std::size_t k = 0; k < plain.cases[n].out.size(); ++k)
        if (!same_bits(plain.cases[n].out[k], first.data(), b->cases[n].out[k], bytes.data()))
          blame(out[chosen[n]], "gives other bits at another place, in another order of cases, with other threads or workgroups, or fused",
                "look for reads past an operand's end, for sums whose order depends on threads, and for contraction");
    count_launches(**loaded);
    for (const std::string& v : batch_variants_) variants_.try_emplace(v);
    return {};
  }

  bool may_flush(const numeric_policy& p) const {
    return facts_.gpu ? p.flushes_on_gpu : p.flushes_pairs && facts_.program != accum_of(facts_.program);
  }
  static bool flush(std::vector<array>& numbers) {
    bool any = false;
    for (array& x : numbers)
      if (is_floating(x.type))
        for (double& v : x.at)
          if (v != 0 && std::fabs(v) < facts_of(x.type).least_normal()) v = std::copysign(0.0, v), any = true;
    return any;
  }
  std::vector<answer> answers(const test_case& c, std::span<const array> numbers, std::size_t outputs,
                              const std::vector<array>& got) const {
    const call asked{numbers.subspan(0, c.in.size()), c.attr, c.scalars, facts_.on(c.of->policy), c.stream};
    std::vector<answer> e(differentiates(c) ? c.in.size() : std::max(outputs, c.of->outputs.size()));
    if (differentiates(c)) c.of->gradient(asked, numbers.subspan(c.in.size()), e);
    else if (c.kind == case_kind::law) {
      e[0].value = got[1].at;
      e[0].slack.assign(got[1].at.size(), 0);
      if (c.of->laws[std::size_t(c.law)].slack != nullptr) c.of->laws[std::size_t(c.law)].slack(asked, e[0]);
    } else {
      c.of->reference(asked, e);
    }
    return e;
  }
  void judge(const test_case& c, const traced_case& t, const placed_case& at, std::vector<array>& numbers,
             const std::vector<std::byte>& bytes, case_result& o) const {
    if (o.is == verdict::failed) return;
    std::vector<array> got;
    for (const tensor_place& p : at.out) got.push_back(read_numbers(p, bytes.data()));
    if (options_.judge != nullptr) return options_.judge->judge(c, t, numbers, got, facts_.on(c.of->policy), o);
    const auto e = answers(c, numbers, got.size(), got);
    if (is_adjoint(c)) return judge_adjoint(c, t, numbers, got, e, o);
    std::vector<answer> other;
    if (may_flush(c.of->policy) && c.kind != case_kind::law && flush(numbers)) other = answers(c, numbers, got.size(), got);
    for (std::size_t k = 0; k < got.size(); ++k) {
      const auto is = std::size_t(t.out_is[k]);
      if (c.kind == case_kind::law && k > 0) break;
      const answer& expected = e[is];
      if (expected.value.size() != got[k].at.size()) {
        blame(o,
              "has " + std::to_string(got[k].at.size()) + " elements in result " + std::to_string(is) + ", the reference has " +
                  std::to_string(expected.value.size()),
              "compare the shape rule with the reference");
        return;
      }
      const comparison by = c.kind == case_kind::gradient ? comparison::scaled
                            : c.kind == case_kind::law
                                ? (c.of->laws[std::size_t(c.law)].slack == nullptr ? comparison::exact : comparison::scaled)
                                : c.of->outputs[std::min(is, c.of->outputs.size() - 1)].by;
      answer limited;
      const conditions on = facts_.on(c.of->policy);
      const bool limits = expected.nmse == 0 && by != comparison::exact;
      if (limits) limited = expected, limited.nmse = mean_square_limit(expected, got[k].type, on);
      const distance d = compare(got[k], limits ? limited : expected, by, on, spread(c), other.empty() ? nullptr : &other[is]);
      o.results.push_back(d);
      if (!d.passes()) blame_distance(o, c, is, got[k], d);
    }
  }
  /// Compares the device's and the reference's gradients with differences.
  void judge_adjoint(const test_case& c, const traced_case& t, std::span<const array> numbers, const std::vector<array>& got,
                     const std::vector<answer>& e, case_result& o) const {
    const call at{numbers.subspan(0, c.in.size()), c.attr, c.scalars, facts_.on(c.of->policy), c.stream};
    const adjoint_law law(*c.of, at, numbers.subspan(c.in.size()), c.seed);
    const auto oracle = law.of_answers(e);
    const double slack = law.off() + 1e-9 * oracle.magnitude;
    if (!(std::fabs(oracle.value - law.along()) <= slack))
      return blame(o,
                   "the reference's gradient along a direction is " + number(oracle.value) + ", its differences are " +
                       number(law.along()) + " within " + number(slack),
                   "compare op_spec<" + std::string(c.of->name) + ">::gradient with the formula");
    adjoint_law::side mine;
    for (std::size_t k = 0; k < got.size(); ++k) {
      const auto is = std::size_t(t.out_is[k]);
      if (e[is].value.size() != got[k].at.size())
        return blame(o, "a gradient has not the size of its operand", "compare the gradient rule with the operands");
      law.add_gradient(mine, is, got[k], e[is]);
    }
    if (!(std::fabs(mine.value - law.along()) <= slack + mine.magnitude))
      blame(o,
            "its gradient along a direction is " + number(mine.value) + ", the reference's differences are " + number(law.along()) +
                " within " + number(slack + mine.magnitude),
            "compare the gradient kernel with the derivative of the formula in op_spec<" + std::string(c.of->name) + ">");
  }
  static std::string number(double x) {
    if (std::isnan(x)) return "nan";  // without its sign, which only some of them have
    char text[40];
    return {text, std::to_chars(text, text + sizeof text, x, std::chars_format::general, 9).ptr};
  }
  static void blame_distance(case_result& o, const test_case& c, std::size_t is, const array& y, const distance& d) {
    const std::string what = std::string(c.kind == case_kind::gradient ? "gradient of operand " : "result ") + std::to_string(is);
    fixed_string<64> dims;
    dims << y.dims;
    const auto results = o.results;
    if (d.worst >= 0)
      blame(o,
            what + " " + std::string(dims.view()) + ", element " + std::to_string(d.worst) + " is " + number(d.got) + ", expected " +
                number(d.expected) + " within " + number(d.bound),
            "compare the kernel with the formula in op_spec<" + std::string(c.of->name) + ">");
    else
      blame(o,
            what + " " + std::string(dims.view()) + " has a mean squared error of " + number(d.nmse) + ", at most " + number(d.nmse_limit),
            "look for sums or weights kept in 16 bits");
    o.results = results;
  }
};

}  // namespace isotope::conform
