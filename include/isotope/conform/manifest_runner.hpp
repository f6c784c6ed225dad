#pragma once
/// Runs the cases of a manifest and compares the results with the numbers in it.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "batch_runner.hpp"
#include "manifest.hpp"

namespace isotope::conform {

struct manifest_result {
  std::string id;
  case_result is;
  std::vector<distance> outputs, grads;
  /// The largest relative difference between the specification's own reference, in f64, and the numbers of the file.
  std::vector<double> reference_outputs, reference_grads;
};

/// One line of results.
inline std::string text_of(const manifest_result& r) {
  const auto list = [](const std::vector<distance>& all) {
    return json_array(all, [](const distance& d) {
      return json_object().number("nmse", d.nmse).number("max_abs", d.max_abs).number("max_rel", d.max_rel).str();
    });
  };
  const auto numbers = [](const std::vector<double>& all) {
    return json_array(all, [](double d) { return std::isfinite(d) ? io::number_text(d) : std::string("null"); });
  };
  return json_object()
             .text("id", r.id)
             .text("status", name_of(r.is.is))
             .text("reason", r.is.reason)
             .set("outputs", list(r.outputs))
             .set("grads", list(r.grads))
             .set("reference_outputs", numbers(r.reference_outputs))
             .set("reference_grads", numbers(r.reference_grads))
             .str() +
         "\n";
}

class manifest_runner : private case_judge {
 public:
  explicit manifest_runner(executor& on) : on_(on), runner_(on, {.perturbed = true, .judge = this}) {}

  /// Results in the order of the cases. @error device_lost, timeout
  result<std::vector<manifest_result>> run(std::vector<manifest_case> cases) {
    cases_ = std::move(cases);
    results_.assign(cases_.size(), {});
    std::vector<test_case> batch;
    for (std::size_t k = 0; k < cases_.size(); ++k) {
      const manifest_case& m = cases_[k];
      results_[k].id = m.id;
      if (!m.unsupported.empty()) {
        results_[k].is = unsupported_because(m.unsupported);
        continue;
      }
      test_case c = m.forward;
      c.id = k;
      if (auto r = add(batch, c); !r) return r.error();
      if (m.grads.empty()) continue;
      if (m.forward.of->gradient == nullptr) {
        merge(results_[k], unsupported_because(std::string(m.forward.of->name) + " has no gradient"));
        continue;
      }
      c.kind = case_kind::gradient;
      c.cotangents_of = std::int32_t(m.cotangents->size());
      if (auto r = prepare_cotangents(m, c); !r) {
        const bool broken = r.error().code == errc::invalid_model;
        merge(results_[k], broken ? failed_because(r.error().what, r.error().fix) : unsupported_because(r.error().what, r.error().fix));
        continue;
      }
      if (auto r = add(batch, c); !r) return r.error();
    }
    if (auto r = flush(batch); !r) return r.error();
    return std::move(results_);
  }

 private:
  executor& on_;
  batch_runner runner_;
  std::vector<manifest_case> cases_;
  std::vector<manifest_result> results_;

  /// A case has the worst result of its parts.
  static void merge(manifest_result& r, case_result o) {
    if (o.is == verdict::passed || r.is.is == verdict::failed || (r.is.is == verdict::unsupported && o.is == verdict::unsupported)) return;
    r.is = std::move(o);
  }
  result<void> add(std::vector<test_case>& batch, const test_case& c) {
    const bool other = !batch.empty() && !(batch[0].scalars == c.scalars);
    if (other || batch.size() == 64)
      if (auto r = flush(batch); !r) return r;
    batch.push_back(c);
    return {};
  }
  result<void> flush(std::vector<test_case>& batch) {
    if (batch.empty()) return {};
    auto all = runner_.run(batch);
    if (!all) return all.error();
    for (std::size_t k = 0; k < batch.size(); ++k) {
      case_result& o = (*all)[k];
      if (o.refused) o.is = verdict::unsupported;  // the op has no such case
      merge(results_[std::size_t(batch[k].id)], std::move(o));
    }
    batch.clear();
    return {};
  }
  /// Returns the cotangents in the formats and shapes of their results.
  /// @error invalid_argument: the case is impossible; invalid_model: its gradient cannot be recorded
  result<void> prepare_cotangents(const manifest_case& m, test_case& c) const {
    const target_facts f = on_.facts();
    const traced_case t = case_tracer::trace_of(c, f.program, f.kernels);
    if (t.refused)
      return fail(errc::invalid_argument, "the op refuses its operands: " + std::string(t.g.error.view()), "case",
                  "give operands that the op takes: isotope-conform plan --json lists them");
    if (!t.g.error.empty())
      return fail(errc::invalid_model, "its trace ends: " + std::string(t.g.error.view()), "case",
                  "give a case whose results can be laid out");
    auto dy = std::make_shared<std::vector<array>>();
    for (std::size_t k = 0; k < m.cotangents->size(); ++k) {
      array a = (*m.cotangents)[k];
      if (k >= t.cotangent_dims.size() || !(a.dims == t.cotangent_dims[k])) {
        message text;
        text << "cotangent " << std::int64_t(k) << ' ' << a.dims << " has another shape than its result";
        return fail(errc::invalid_argument, std::string(text.view()), "case", "give operands of the sizes that the case names");
      }
      a.type = t.cotangent_types[k];
      for (double& v : a.at) v = nearest(a.type, v);
      const bool means = std::any_of(a.at.begin(), a.at.end(), [](double v) { return v != 0; });
      if (k > 0 && means && c.of->op->kind != op_kind::view)
        return fail(errc::invalid_argument, "the gradient of " + std::string(c.of->name) + " takes the cotangent of its first result alone",
                    "case", "give one cotangent");
      dy->push_back(std::move(a));
    }
    c.cotangents = std::move(dy);
    return {};
  }

  void judge(const test_case& c, const traced_case& t, std::span<const array> numbers, std::span<const array> got, const conditions& on,
             case_result& o) override {
    const manifest_case& m = cases_[std::size_t(c.id)];
    manifest_result& r = results_[std::size_t(c.id)];
    const bool forward = c.kind == case_kind::forward;
    const call asked{numbers.subspan(0, c.in.size()), c.attr, c.scalars, on};
    std::vector<answer> e(forward ? std::max(got.size(), c.of->outputs.size()) : c.in.size());
    if (forward) c.of->reference(asked, e);
    else c.of->gradient(asked, numbers.subspan(c.in.size()), e);
    const std::size_t n = forward ? m.outputs.size() : m.grads.size();
    for (std::size_t k = 0; k < n; ++k) {
      const std::int64_t which = forward ? std::int64_t(k) : m.grads[k].input;
      const array& expected = forward ? m.outputs[k] : m.grads[k].expected;
      const std::string what = (forward ? "result " : "gradient of operand ") + std::to_string(which);
      std::size_t at = 0;
      while (at < got.size() && t.out_is[at] != which) ++at;
      if (at == got.size()) return fail_with(o, "the op gives no " + what);
      if (!(got[at].dims == expected.dims)) {
        message text;
        text << " is " << got[at].dims << ", the file has " << expected.dims;
        return fail_with(o, what + std::string(text.view()));
      }
      const distance d = compare_with(m, c, got[at], expected, e[std::size_t(which)], std::size_t(which), forward, on);
      (forward ? r.outputs : r.grads).push_back(d);
      (forward ? r.reference_outputs : r.reference_grads).push_back(relative_difference(e[std::size_t(which)], expected, got[at].type));
      if (d.worst < 0 && d.nmse_exceeded)
        fail_with(o, what + " has a mean squared error of " + io::number_text(d.nmse) + ", at most " + io::number_text(d.nmse_limit));
      else if (!d.passes())
        fail_with(o, what + ", element " + std::to_string(d.worst) + " is " + io::number_text(d.got) + ", expected " +
                         io::number_text(d.expected) + " within " + io::number_text(d.bound));
    }
  }
  static void fail_with(case_result& o, std::string reason) {
    if (o.is != verdict::failed) o = failed_because(std::move(reason), "compare the op with what made the file");
  }
  /// Returns the largest relative difference of a number. In formats narrower than f32 the file has rounded numbers, the reference unrounded ones. It
  /// is infinite if one number is zero, infinite or NaN and the other is not.
  static double relative_difference(const answer& own, const array& expected, dtype type) {
    if (own.value.size() != expected.at.size()) return infinity;
    double most = 0;
    for (std::size_t i = 0; i < own.value.size(); ++i) {
      const double x = expected.at[i], ours = type == dtype::f16 || type == dtype::bf16 ? nearest(type, own.value[i]) : own.value[i];
      if (ours == x || (std::isnan(ours) && std::isnan(x))) continue;
      const double d = std::fabs(ours - x) / std::fabs(x);
      most = std::isfinite(d) ? std::fmax(most, d) : infinity;
    }
    return most;
  }
  /// Compares within the manifest's tolerances, or within the op's own bound around the file's numbers.
  static distance compare_with(const manifest_case& m, const test_case& c, const array& got, const array& expected, const answer& own,
                               std::size_t which, bool forward, const conditions& on) {
    answer a = own;
    a.nmse = a.slack.size() == expected.at.size() ? mean_square_limit(own, got.type, on) : -1;
    a.value = expected.at;
    comparison by = forward ? c.of->outputs[std::min(which, c.of->outputs.size() - 1)].by : comparison::scaled;
    if ((m.rtol >= 0 || m.atol >= 0) && is_floating(got.type)) {
      const double r = std::fmax(m.rtol, 0), t = std::fmax(m.atol, 0);
      a.roundings = 0;
      a.nmse = -1;  // the file's tolerances suffice
      a.slack.resize(a.value.size());
      for (std::size_t i = 0; i < a.value.size(); ++i) a.slack[i] = std::isfinite(a.value[i]) ? t + r * std::fabs(a.value[i]) : 0;
      by = comparison::scaled;
    } else if (a.slack.size() != a.value.size()) {
      a.slack.assign(a.value.size(), 0);
    }
    return compare(got, a, by, on, by != comparison::exact && is_floating(got.type));
  }
};

}  // namespace isotope::conform
