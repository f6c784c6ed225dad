#pragma once
/// How a program looks into what it runs: isotope::gpu_diagnostics as settings, and the reports that programs write of every plan they load.
/// docs/FLAGS.md is made of these fields.
#include <isotope/config/arguments.hpp>
#include <isotope/config/reflect.hpp>
#include <isotope/core/gpu_options.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace support {

struct diagnose_settings {
  // Reports, once for each plan that is loaded: a path, `-` for stderr, empty for none.
  std::string dispatch_report, step_list, ir_dump, fusion_report;
  bool verbose = false, log_fallback = false;

  // What runs.
  std::string kernel_dispatch = "kernels";
  bool f16_weights = false;
  std::string weights = "f32";
  bool a8 = false;
  bool no_coop = false, no_coop_f16 = false, no_workgroup_coop = false;
  double coop_osc_thresh = 0.35;
  bool coop_no_auto_wide = false, coop_force_wide = false;
  std::uint32_t split_k = 0;
  bool force_input_upload = false;

  // How the device is opened.
  bool validate = false, names = false, no_self_test = false, distrust_coop = false;
  std::int64_t chunk_bytes = 0;
  std::int32_t drop_barrier = -1;
  std::string inject_fault;

  /// The name of the format of weights.
  std::string_view stored_weights() const { return f16_weights ? "f16" : std::string_view(weights); }
  /// Whether programs whose own format is `own` store weights so.
  bool stores_in(isotope::dtype own) const {
    return own == isotope::dtype::f32 || stored_weights() == "f32" ||
           (own == isotope::dtype::bf16 && (stored_weights() == "q8_0" || stored_weights() == "q4_0"));
  }
  bool decompose_all() const { return kernel_dispatch == "common"; }
};

/// What the fields mean, for --help and the table of flags.
inline const std::map<std::string, std::string, std::less<>>& diagnose_meanings() {
  static const std::map<std::string, std::string, std::less<>> meanings = {
      {"diagnose.dispatch_report",
       "file, or - for stderr: every launch with op, kernel set, reason of a fall-through, shape; on a gpu shader and workgroups"},
      {"diagnose.step_list", "file, or - for stderr: every step of the plan with the arena offsets of its operands"},
      {"diagnose.ir_dump", "file, or - for stderr: the trace that is laid out"},
      {"diagnose.fusion_report", "file, or - for stderr: which element-wise ops were fused, and what kept the others apart"},
      {"diagnose.verbose", "device, plan and counters on stderr"},
      {"diagnose.log_fallback", "on stderr every op that runs on a lower kernel set than wanted, with the reason"},
      {"diagnose.kernel_dispatch", "kernels, or common: every op that can be is decomposed into simpler ones"},
      {"diagnose.f16_weights",
       "f32 builds, to generate alone: weights of products are stored in f16, half the bytes; activations stay f32"},
      {"diagnose.weights",
       "to generate alone: the format of weights of products: in f32 builds f32, f16, bf16, q8_0 or q4_0, in bf16 builds the last two, "
       "which are for cpu"},
      {"diagnose.a8",
       "with weights in q8_0 or q4_0: products round their activations to 8 bits, 32 at a time, and multiply integers: faster, less exact; "
       "in bf16 builds slower where the processor has AMX"},
      {"diagnose.no_coop", "gpu: no matrix units"},
      {"diagnose.no_coop_f16", "gpu: no matrix units for f16 operands; bf16 keeps them"},
      {"diagnose.no_workgroup_coop", "gpu: no VK_NV_cooperative_matrix2"},
      {"diagnose.coop_osc_thresh",
       "gpu: f16 weights whose signs alternate along K by more (0 to 1) keep f32 activations, off the matrix units"},
      {"diagnose.coop_no_auto_wide", "gpu: f16 weights take matrix units, with activations rounded to f16, however they alternate"},
      {"diagnose.coop_force_wide", "gpu: f16 weights never take matrix units: activations stay f32"},
      {"diagnose.split_k", "gpu: parts of K in products that fill the device badly; 0: chosen by size"},
      {"diagnose.force_input_upload", "copy inputs also when they have not changed"},
      {"diagnose.validate", "gpu: load the validation layer; its messages come on stderr at the end"},
      {"diagnose.names", "gpu: give every object a name for debuggers"},
      {"diagnose.no_self_test", "gpu: trust matrix units without trying them first"},
      {"diagnose.distrust_coop", "gpu: let the self-test of matrix units fail"},
      {"diagnose.chunk_bytes", "gpu: largest single allocation; 0: the device's own limit"},
      {"diagnose.drop_barrier", "gpu: leave out barrier K, to see that it is missed; -1: none"},
      {"diagnose.inject_fault", "gpu: device_lost:N, out_of_memory:N or hung:N, a failure after N submissions"},
  };
  return meanings;
}

/// A fault and after how many submissions it comes; none for text that says neither.
struct fault_setting {
  isotope::injected_fault kind = isotope::injected_fault::none;
  std::int64_t after = 0;
};
inline std::optional<fault_setting> parse_fault(std::string_view text) {
  using isotope::injected_fault;
  if (text.empty()) return fault_setting{};
  const auto colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  fault_setting f;
  f.kind = name == "device_lost"     ? injected_fault::device_lost
           : name == "out_of_memory" ? injected_fault::out_of_memory
           : name == "hung"          ? injected_fault::hung
                                     : injected_fault::none;
  if (f.kind == injected_fault::none) return std::nullopt;
  if (colon == text.npos) return f;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), f.after);
  if (error != std::errc() || end != text.data() + text.size() || f.after < 0) return std::nullopt;
  return f;
}

/// What is wrong with a field, and what to give instead.
struct objection {
  std::string key, what, fix;
};
inline std::optional<objection> objection_to(const diagnose_settings& s, bool generates = false) {
  if (s.f16_weights && !generates) return objection{"diagnose.f16_weights", "is for isotope-generate", "train in f32 or bf16"};
  constexpr std::string_view formats[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};
  if (std::find(std::begin(formats), std::end(formats), s.weights) == std::end(formats))
    return objection{"diagnose.weights", "is '" + s.weights + "'", "give f32, f16, bf16, q8_0 or q4_0"};
  if (s.weights != "f32" && !generates) return objection{"diagnose.weights", "is for isotope-generate", "train in f32 or bf16"};
  if (s.a8 && s.weights != "q8_0" && s.weights != "q4_0")
    return objection{"diagnose.a8", "is for weights in q8_0 or q4_0, not " + std::string(s.stored_weights()),
                     "give --weights q8_0 or q4_0"};
  if (s.kernel_dispatch != "kernels" && s.kernel_dispatch != "common")
    return objection{"diagnose.kernel_dispatch", "is '" + s.kernel_dispatch + "'", "give kernels or common"};
  if (!parse_fault(s.inject_fault))
    return objection{"diagnose.inject_fault", "is '" + s.inject_fault + "'", "give device_lost:N, out_of_memory:N or hung:N"};
  if (!(s.coop_osc_thresh >= 0)) return objection{"diagnose.coop_osc_thresh", "is " + std::to_string(s.coop_osc_thresh), "give 0 to 1"};
  if (s.chunk_bytes < 0) return objection{"diagnose.chunk_bytes", "is " + std::to_string(s.chunk_bytes), "give 0 or more"};
  return std::nullopt;
}

inline isotope::gpu_diagnostics diagnostics_of(const diagnose_settings& s) {
  isotope::gpu_diagnostics d;
  d.validate = s.validate;
  d.names = s.names;
  d.no_self_test = s.no_self_test;
  d.distrust_matrix_units = s.distrust_coop;
  d.force_upload = s.force_input_upload;
  d.no_matrix_units = s.no_coop;
  d.no_f16_matrices = s.no_coop_f16;
  d.no_workgroup_matrices = s.no_workgroup_coop;
  d.oscillation_threshold = float(s.coop_osc_thresh);
  d.no_auto_wide = s.coop_no_auto_wide;
  d.force_wide = s.coop_force_wide;
  d.split_k = s.split_k;
  d.chunk_bytes = s.chunk_bytes;
  d.drop_barrier = s.drop_barrier;
  if (const auto fault = parse_fault(s.inject_fault)) d.fault = fault->kind, d.fault_after = fault->after;
  return d;
}

}  // namespace support

BOOST_HANA_ADAPT_STRUCT(support::diagnose_settings, dispatch_report, step_list, ir_dump, fusion_report, verbose, log_fallback,
                        kernel_dispatch, f16_weights, weights, a8, no_coop, no_coop_f16, no_workgroup_coop, coop_osc_thresh,
                        coop_no_auto_wide, coop_force_wide, split_k, force_input_upload, validate, names, no_self_test, distrust_coop,
                        chunk_bytes, drop_barrier, inject_fault);
