#pragma once
/// Reports plan errors as one line each, and makes the compiler print them in its `error:` line.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "plan.hpp"

namespace isotope {

/// Returns which kernel the backend lacks for this plan and what to do; empty if it lacks none.
constexpr message missing_kernel(const plan_view& p, std::string_view backend, std::span<const kernel_info> target,
                                 std::span<const kernel_info> all) {
  const auto lacks = [&](const op_info* op) {
    message m;
    if (find_kernel(target, op, p.totals.program) >= 0) return m;
    m << backend << " has no " << name_of(p.totals.program) << " kernel for " << op->name << ": ";
    for (const dtype other : {dtype::f32, dtype::bf16})
      if (find_kernel(all, op, other) >= 0) return m << "use -DPRECISION=" << name_of(other);
    return m << "use another -DBACKEND or add " << op->name << ".hpp to kernels/" << backend << "/reference";
  };
  for (const auto& s : p.steps) {
    if (auto m = lacks(s.op); !m.empty()) return m;
    for (std::int32_t k = 0; k < s.body_size; ++k)
      if (auto m = lacks(p.micro_ops[std::size_t(s.body + k)].op); !m.empty()) return m;
  }
  return {};
}

/// Returns by how much the plan exceeds a budget in bytes (0: no budget); empty if it does not.
constexpr message over_budget(const plan_view& p, std::int64_t budget) {
  message m;
  constexpr std::int64_t mib = 1 << 20;
  if (budget > 0 && p.totals.bytes > budget)
    m << "plan needs " << (p.totals.bytes + mib - 1) / mib << " MiB, budget is " << budget / mib
      << " MiB: lower the batch, recompute blocks or raise the budget";
  return m;
}

/// Says that a tensor exceeds the limit of a backend that addresses a tensor with 32 bits.
constexpr message beyond_tensor_limit(std::string_view what, const shape& dims, std::int64_t bytes, std::string_view backend,
                                      std::int64_t limit) {
  message m;
  m << what << ' ' << dims << " has " << bytes << " bytes, " << backend << " takes at most " << limit
    << " per tensor: lower the batch or split it";
  return m;
}
/// Returns which tensor exceeds the limit of a backend that addresses a tensor with 32 bits (0: no limit); empty if none does. The flat regions of
/// parameters, gradients and moments may exceed it, because kernels process them in pieces.
constexpr message over_tensor_limit(const plan_view& p, std::string_view backend, std::int64_t limit) {
  if (limit <= 0) return {};
  for (const auto& s : p.slots)
    if (const auto bytes = s.dims.count() * 4; bytes > limit) return beyond_tensor_limit(s.path.view(), s.dims, bytes, backend, limit);
  for (const auto& s : p.steps)
    for (int k = 0; k < s.inputs + s.outputs; ++k) {
      const operand& o = p.operands[std::size_t(s.operands + k)];
      const bool flat =
          o.region == value_kind::param || o.region == value_kind::master || o.region == value_kind::grad || o.region == value_kind::moment;
      if (!flat && o.bytes > limit) return beyond_tensor_limit(s.op->name, o.dims, o.bytes, backend, limit);
    }
  return {};
}

/// A part of a message as a template argument.
template <int N> struct phrase {
  char text[N + 1]{};
};
/// Is never defined: its name is the message, divided into phrases that every compiler prints whole.
template <auto... Phrases> struct error;
template <> struct error<> {};

namespace plan_detail {
inline constexpr std::size_t phrase_limit = 30;  // clang prints longer texts in template arguments as numbers

/// Returns the length of the first phrase: it ends at a blank, else after one of `. / _ ,`, else at the limit.
constexpr std::size_t phrase_length(std::string_view m) {
  if (m.size() <= phrase_limit) return m.size();
  for (std::size_t n = phrase_limit; n > 1; --n)
    if (m[n - 1] == ' ') return n;
  for (std::size_t n = phrase_limit; n > 1; --n)
    if (m[n - 1] == '.' || m[n - 1] == '/' || m[n - 1] == '_' || m[n - 1] == ',') return n;
  return phrase_limit;
}
constexpr std::size_t phrase_count(std::string_view m) {
  std::size_t k = 0;
  for (; !m.empty(); ++k) m.remove_prefix(phrase_length(m));
  return k;
}
constexpr std::string_view phrase_at(std::string_view m, std::size_t k) {
  while (k-- > 0) m.remove_prefix(phrase_length(m));
  m = m.substr(0, phrase_length(m));
  while (!m.empty() && m.back() == ' ') m.remove_suffix(1);
  return m;
}
template <int N> constexpr phrase<N> spelled(std::string_view v) {
  phrase<N> p;
  for (int i = 0; i < N; ++i) p.text[i] = v[std::size_t(i)];
  p.text[N] = 0;  // clang prints a text only if the zero at its end was written
  return p;
}
template <const message& M, std::size_t... I>
auto spell(std::index_sequence<I...>) -> error<spelled<int(phrase_at(M.view(), I).size())>(phrase_at(M.view(), I))...>;
}  // namespace plan_detail

/// void for an empty message, else an error<> named after the message.
template <const message& M>
using diagnosis = decltype(plan_detail::spell<M>(std::make_index_sequence<plan_detail::phrase_count(M.view())>{}));

/// Instantiating `report<diagnosis<m>>` does not compile unless m is empty; the single error line has the message.
template <class Diagnosis> struct report {
  static_assert(sizeof(Diagnosis) > 0);
};

}  // namespace isotope
