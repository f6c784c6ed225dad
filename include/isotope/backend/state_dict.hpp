#pragma once
/// What sessions of every backend ask of a plan: its slots and ports by name.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/batch.hpp"
#include "../core/error.hpp"
#include "../plan/plan.hpp"

namespace isotope {

inline const port* find_port(std::span<const port> ports, std::string_view label) {
  for (const auto& p : ports)
    if (p.label.view() == label) return &p;
  return nullptr;
}
/// @error not_found, with the names there are; invalid_argument for elements of another size
inline result<const port*> typed_port(std::span<const port> ports, std::string_view label, std::int64_t element_bytes, const char* what) {
  const port* p = find_port(ports, label);
  if (p == nullptr) {
    std::string names;
    for (const auto& q : ports) names += (names.empty() ? "" : ", ") + std::string(q.label.view());
    return fail(errc::not_found, std::string("no ") + what + " '" + std::string(label) + "'", "session", "there are: " + names);
  }
  if (size_of(p->where.type) != element_bytes)
    return fail(errc::invalid_argument, std::string(label) + " holds " + std::string(name_of(p->where.type)), "session",
                "ask for that type");
  return p;
}
/// The input of one plan that has the name, format and size of another plan's input; null where there is none.
inline const port* same_port(std::span<const port> ports, const port& as) {
  const port* p = find_port(ports, as.label.view());
  return p != nullptr && p->where.type == as.where.type && p->where.dims == as.where.dims ? p : nullptr;
}
/// @error as `to`; invalid_argument for another length
template <class E> result<void> copy_to_input(const result<std::span<E>>& to, std::span<const E> from, std::string_view label) {
  if (!to) return to.error();
  if (to->size() != from.size())
    return fail(errc::invalid_argument,
                "the buffer has " + std::to_string(from.size()) + " elements, the input " + std::to_string(to->size()), std::string(label),
                "give a buffer of the input's size");
  std::copy(from.begin(), from.end(), to->begin());
  return {};
}
/// Whether a batch has the ids that a plan's inputs hold.
inline bool fits(std::span<const port> ports, const batch& b) {
  const auto same = [&](std::string_view label, std::span<const std::int32_t> from) {
    const port* p = find_port(ports, label);
    return p == nullptr || (p->where.type == dtype::i32 && p->where.dims.count() == std::int64_t(from.size()));
  };
  return same("tokens", b.tokens) && same("targets", b.targets);
}
/// Whether steps of the plan add to what earlier micro-batches left.
inline bool accumulates(const plan_view& p) {
  for (const auto& s : p.steps)
    if (s.accumulate != 0) return true;
  return false;
}
/// A number of any floating-point format.
inline double number_at(const void* at, dtype t) {
  switch (t) {
    case dtype::f64: return *static_cast<const double*>(at);
    case dtype::bf16: return double(float(*static_cast<const bfloat16*>(at)));
    case dtype::f16: return double(float(*static_cast<const float16*>(at)));
    default: return double(*static_cast<const float*>(at));
  }
}
/// The norm of a gradient from the norms of its tensors, or the one number that there is.
inline double norm_at(const std::byte* first, const operand& o) {
  const std::int64_t n = o.dims.count();
  if (n == 1) return number_at(first, o.type);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = number_at(first + i * size_of(o.type), o.type);
    sum += x * x;
  }
  return std::sqrt(sum);
}
/// Bytes of a plan's loss and gradient norms.
inline std::int64_t report_bytes(const plan_view& p) {
  const port* norm = find_port(p.outputs, "grad_norm");
  const std::int64_t numbers = 1 + (norm == nullptr ? 1 : norm->where.dims.count());
  return numbers * size_of(accum_of(p.totals.program));
}
/// The elements of an operand in row-major order; `first` is its first element in host memory.
inline std::vector<float> numbers_of(const std::byte* first, const operand& o) {
  std::vector<float> r(std::size_t(o.dims.count()));
  extents index{};
  for (float& x : r) {
    std::int64_t at = 0;
    for (int k = 0; k < o.dims.rank; ++k) at += index[std::size_t(k)] * o.strides[std::size_t(k)];
    const std::byte* p = first + at * size_of(o.type);
    switch (o.type) {
      case dtype::i32: x = float(*reinterpret_cast<const std::int32_t*>(p)); break;
      case dtype::u32: x = float(*reinterpret_cast<const std::uint32_t*>(p)); break;
      case dtype::i64: x = float(*reinterpret_cast<const std::int64_t*>(p)); break;
      case dtype::u16: x = float(*reinterpret_cast<const std::uint16_t*>(p)); break;
      case dtype::u8:
      case dtype::boolean: x = float(*reinterpret_cast<const std::uint8_t*>(p)); break;
      default: x = float(number_at(p, o.type));
    }
    for (int k = o.dims.rank - 1; k >= 0; --k) {
      if (++index[std::size_t(k)] < o.dims[k]) break;
      index[std::size_t(k)] = 0;
    }
  }
  return r;
}

/// @error model_mismatch where an evaluation plan has other parameters
inline result<void> same_parameters(const plan_view& a, const plan_view& b) {
  if (b.steps.empty()) return {};
  bool same = a.slots.size() == b.slots.size();
  for (std::size_t i = 0; same && i < a.slots.size(); ++i)
    same = a.slots[i].path == b.slots[i].path && a.slots[i].dims == b.slots[i].dims && a.slots[i].at == b.slots[i].at &&
           a.slots[i].type == b.slots[i].type;
  if (same) return {};
  return fail(errc::model_mismatch, "the evaluation plan has other parameters than the training plan", "session",
              "plan both from one model, with one group of training_options");
}
/// @error not_found, invalid_argument for another length
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
/// @error invalid_argument where a finite number would become infinite in the format that a slot is stored in
inline result<void> within_range(const slot& s, std::span<const float> x) {
  if (s.type != dtype::f16) return {};
  for (const float v : x)
    if (const float size = v < 0 ? -v : v; size >= 65520 && size <= std::numeric_limits<float>::max())
      return fail(errc::invalid_argument, "holds " + std::to_string(v) + ", beyond the range of f16", std::string(s.path.view()),
                  "store it in bf16 or f32");
  return {};
}
/// x rounded to a 16-bit format, as bits.
inline std::vector<std::uint16_t> stored_halves(dtype type, std::span<const float> x) {
  std::vector<std::uint16_t> r(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) r[i] = type == dtype::f16 ? float16(x[i]).bits : bfloat16(x[i]).bits;
  return r;
}
/// Where the f32 (f64) numbers of a tensor lie: a region, and a byte offset into it.
struct stored_tensor {
  value_kind region{};
  std::int64_t at = 0;
};
/// @error not_found where there is no such slot or the program keeps no such tensor, invalid_argument for another length
inline result<stored_tensor> locate(const plan_view& p, tensor_kind what, std::size_t k, std::int64_t length) {
  if (auto r = has_slot(p, k, length); !r) return r.error();
  const slot& s = p.slots[k];
  const dtype accum = accum_of(p.totals.program);
  const auto at = s.at * size_of(accum);
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
  return stored_tensor{value_kind::state, moment == 1 ? at : s.moment2 * size_of(accum)};
}

/// Whether a session of the plan has such a tensor to read.
inline bool keeps(const plan_view& p, tensor_kind what, std::size_t k) {
  return k < p.slots.size() && locate(p, what, k, p.slots[k].dims.count()).ok();
}

}  // namespace isotope
