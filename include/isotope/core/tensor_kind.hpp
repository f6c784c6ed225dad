#pragma once
/// The tensors that a session keeps for every parameter.
#include <cstddef>
#include <cstdint>
#include <span>

namespace isotope {

enum class tensor_kind : std::uint8_t { parameter, gradient, moment1, moment2 };

/// One tensor among many that are read together, and where its numbers go.
struct tensor_read {
  tensor_kind what = tensor_kind::parameter;
  std::size_t slot = 0;
  std::span<float> out;
};

}  // namespace isotope
