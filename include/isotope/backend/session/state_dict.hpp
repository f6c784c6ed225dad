#pragma once
/// The state dict of a plan, for sessions of every backend: where a tensor is stored, in which format, and checks of its length and range.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/tensor_kind.hpp"
#include "../../plan/plan.hpp"
#include "divided_tensors.hpp"

namespace isotope {

/// Checks that a plan has the same parameters as the first, and packed copies of weights only where the first has them, too, since that one's are kept up to
/// date. @error model_mismatch
inline result<void> same_parameters(const plan_view& a, const plan_view& b, std::string_view label) {
  if (b.steps.empty()) return {};
  bool same = a.slots.size() == b.slots.size(), packed = true;
  for (std::size_t i = 0; same && i < a.slots.size(); ++i)
    same = a.slots[i].path == b.slots[i].path && a.slots[i].dims == b.slots[i].dims && a.slots[i].at == b.slots[i].at &&
           a.slots[i].type == b.slots[i].type;
  for (std::size_t i = 0; same && i < a.slots.size(); ++i)
    packed = packed && (b.slots[i].packed < 0 ||
                        (a.slots[i].packed == b.slots[i].packed && a.slots[i].packed_transposed == b.slots[i].packed_transposed));
  if (same && packed) return {};
  if (same)
    return fail(errc::model_mismatch,
                "the plan '" + std::string(label) + "' reads packed copies of weights that the first plan does not have", "session",
                "plan all with the same `pack` and `batch_invariant`");
  return fail(errc::model_mismatch, "the plan '" + std::string(label) + "' has other parameters than the first plan", "session",
              "plan all from one model, with one group of training_options");
}
/// Checks that two plans have the same states, unless one has none. @error model_mismatch
inline result<void> same_states(std::span<const port> a, std::span<const port> b, std::string_view label) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i)
    same = a[i].label == b[i].label && a[i].where.dims == b[i].where.dims && a[i].where.type == b[i].where.type &&
           a[i].where.at == b[i].where.at;
  if (same || a.empty() || b.empty()) return {};
  return fail(errc::model_mismatch, "the plan '" + std::string(label) + "' has other states than a plan before it", "session",
              "declare all states in one order in every model that shares them");
}
/// Checks that a plan has a slot k with this many elements. @error not_found, invalid_argument for another length
inline result<void> has_slot(const plan_view& p, std::size_t k, std::int64_t length) {
  if (k >= p.slots.size())
    return fail(errc::not_found, "slot " + std::to_string(k) + " of " + std::to_string(p.slots.size()), "session",
                "ask for a slot of parameters()");
  const slot& s = p.slots[k];
  if (s.dims.count() == length) return {};
  return fail(errc::invalid_argument,
              std::string(s.path.view()) + " has " + std::to_string(s.dims.count()) + " numbers, not " + std::to_string(length), "session",
              "give a span of the parameter's size");
}
/// Checks that there is a state k with this many elements. @error not_found, invalid_argument for another length
inline result<void> has_state(std::span<const port> states, std::size_t k, std::int64_t length) {
  if (k >= states.size())
    return fail(errc::not_found, "state " + std::to_string(k) + " of " + std::to_string(states.size()), "session",
                "ask for one of states()");
  const port& p = states[k];
  if (p.where.dims.count() == length) return {};
  return fail(errc::invalid_argument,
              std::string(p.label.view()) + " has " + std::to_string(p.where.dims.count()) + " numbers, not " + std::to_string(length),
              "session", "give a span of the state's size");
}
/// Checks that no finite number would become infinite in the format that a slot is stored in. @error invalid_argument
inline result<void> within_range(const slot& s, std::span<const float> x) {
  if (in_blocks(s.type)) {
    for (const float v : x)
      if (!(std::fabs(v) <= quantized::largest(s.type)))
        return fail(errc::invalid_argument, "holds " + std::to_string(v) + ", beyond the range of " + std::string(name_of(s.type)),
                    std::string(s.path.view()), "store it in bf16 or f32");
    return {};
  }
  if (s.type != dtype::f16) return {};
  for (const float v : x)
    if (const float size = v < 0 ? -v : v; size >= 65520 && size <= std::numeric_limits<float>::max())
      return fail(errc::invalid_argument, "holds " + std::to_string(v) + ", beyond the range of f16", std::string(s.path.view()),
                  "store it in bf16 or f32");
  return {};
}
/// Writes x to `to` in a format.
template <class E> void store(dtype type, const E* x, std::int64_t n, std::byte* to) {
  const auto put = [&]<class To>(To* y) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = To(float(x[i]));
  };
  switch (type) {
    case dtype::f16: return put(reinterpret_cast<float16*>(to));
    case dtype::bf16: return put(reinterpret_cast<bfloat16*>(to));
    case dtype::f64: {
      for (std::int64_t i = 0; i < n; ++i) reinterpret_cast<double*>(to)[i] = double(x[i]);
      return;
    }
    case dtype::i32: {
      for (std::int64_t i = 0; i < n; ++i) reinterpret_cast<std::int32_t*>(to)[i] = std::int32_t(x[i]);
      return;
    }
    default: return put(reinterpret_cast<float*>(to));
  }
}
/// Where the f32 values of a tensor (f64 in f64 programs) are stored: a region, and a byte offset into it.
struct stored_tensor {
  value_kind region{};
  std::int64_t at = 0;
};
/// Finds where a tensor is stored. @error not_found where there is no such slot or the program keeps no such tensor, invalid_argument for another length
inline result<stored_tensor> locate(const plan_view& p, tensor_kind what, std::size_t k, std::int64_t length) {
  if (auto r = has_slot(p, k, length); !r) return r.error();
  const slot& s = p.slots[k];
  const dtype accum = accum_of(p.totals.program);
  const auto at = s.at * size_of(accum);
  if (divided_by_data(p, what, k))
    return fail(errc::not_found, "its moments and masters are divided between the data indices (zero 1)", std::string(s.path.view()),
                "read the rank's part by `read_own`");
  if (frozen_without_master(p, what, k))
    return fail(errc::not_found, "a frozen parameter has no master with zero 1", std::string(s.path.view()), "read it by `read_own`");
  if (what == tensor_kind::parameter) {
    if (s.type != p.totals.program)
      return fail(errc::not_found, "stored in " + std::string(name_of(s.type)) + " only", std::string(s.path.view()),
                  "read it from the checkpoint");
    if (accum == p.totals.program) return stored_tensor{value_kind::param, at};
    if (p.totals.region[std::size_t(value_kind::master)] > 0) return stored_tensor{value_kind::master, at};
    return fail(errc::not_found, "a " + std::string(name_of(p.totals.program)) + " inference program keeps no f32 parameters",
                std::string(s.path.view()), "read them from the checkpoint");
  }
  const int moment = what == tensor_kind::moment1 ? 1 : what == tensor_kind::moment2 ? 2 : 0;
  if (moment == 0 ? s.grad < 0 : moment == 1 ? !s.trained || p.totals.moments == 0 : s.moment2 < 0)
    return fail(errc::not_found, "the program keeps no such tensor for " + std::string(s.path.view()), "session",
                "read gradients and moments of a training program, and of parameters that it trains");
  if (moment == 0) return stored_tensor{value_kind::grad, at};
  return stored_tensor{value_kind::moment, moment == 1 ? at : s.moment2 * size_of(accum)};
}

/// Whether a session of the plan has such a tensor to read.
inline bool keeps(const plan_view& p, tensor_kind what, std::size_t k) {
  return k < p.slots.size() && locate(p, what, k, p.slots[k].dims.count()).ok();
}

}  // namespace isotope
