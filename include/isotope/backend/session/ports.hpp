#pragma once
/// The inputs and outputs of a plan by name, and numbers of any format read on the host.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/error.hpp"
#include "../../plan/plan.hpp"

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
/// Whether elements of a format are numbers of this type, as the host writes them.
template <class E> constexpr bool holds(dtype t) { return size_of(t) == std::int64_t(sizeof(E)); }
/// The input of one plan that has the name, format and size of another plan's input; null where there is none.
inline const port* same_port(std::span<const port> ports, const port& as) {
  const port* p = find_port(ports, as.label.view());
  return p != nullptr && p->where.type == as.where.type && p->where.dims == as.where.dims ? p : nullptr;
}
/// The input that a batch's numbers do not fit by size or type; null where they fit, or where the plan has no such input.
template <class E> const port* mismatched_port(std::span<const port> ports, std::string_view label, std::span<const E> from) {
  const port* p = find_port(ports, label);
  const bool fits = p == nullptr || (holds<E>(p->where.type) && p->where.dims.count() == std::int64_t(from.size()));
  return fits ? nullptr : p;
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

}  // namespace isotope
