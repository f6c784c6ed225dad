#pragma once
/// Whether a step of attention runs by products of warps or of warpgroups on tensor cores.
#include <string_view>

#include <isotope/fatbins/attention_grad_hopper.hpp>
#include <isotope/fatbins/attention_hopper.hpp>
#include <isotope/kernels/cuda/attention/variants.hpp>

#include "attention_mma.hpp"
#include "attention_tiles.h"

namespace isotope::cuda {

/// Returns the work with the reasons why tensor cores do not take it. @param there  whether this build has code for the products of warps
inline attention_work with_tensor_cores(attention_work w, const attention_heads& h, const launch& l, bool there) {
  auto why = tensor_core_refusal(h, l, 0);
  auto& warpgroups = w.refusal(attention_kind::warpgroups) = why;
  if (why.empty() && !there) why = "this build has no code for tensor cores";
  w.refusal(attention_kind::tensor_cores) = why;
  if (warpgroups.empty() && !l.device->hopper()) warpgroups = "the device does not have the instructions of compute capability 9.0";
  if (warpgroups.empty() && !(fatbins::attention_hopper.there() && fatbins::attention_grad_hopper.there()))
    warpgroups = "this build has no code for Hopper";
  return w;
}
template <bool Gradient> bool on_tensor_cores(const attention_variant<Gradient>& v) {
  return v.kind == attention_kind::warpgroups || v.kind == attention_kind::tensor_cores;
}
/// Returns why a step runs on no tensor cores.
template <class Variants> std::string_view portable_reason(const Variants& all, const attention_work& w) {
  if (const auto why = w.refusal(attention_kind::tensor_cores); !why.empty()) return why;
  for (const auto& v : all)
    if (on_tensor_cores(v) && v.unfit(w).empty()) return "a portable kernel was asked for, or is faster by estimate";
  return "the device has too little shared memory";
}

}  // namespace isotope::cuda
