#pragma once
/// A machine that wraps another one: it records the name of every op that the model applies, and forwards the op.
#include <isotope/core/tensor.hpp>

#include <string>
#include <vector>

namespace user {

/// Base may be `graph<T>`, `eager<T>` or another `logging`.
template <isotope::Machine Base> struct logging : Base {
  using Base::Base;
  std::vector<std::string> log;

  constexpr isotope::applied apply(const isotope::op_rules& op, std::span<const std::int32_t> in, const isotope::attributes& a,
                                   isotope::place at) {
    log.push_back(std::string(op.info->name));
    return Base::apply(op, in, a, at);
  }
};

}  // namespace user
