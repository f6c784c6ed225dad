#pragma once
/// The tensors that a session keeps.
#include <cstddef>
#include <cstdint>
#include <span>

namespace isotope {

/// The first four of every parameter, by its number in `parameters()`; `state` by its number in `states()`.
enum class tensor_kind : std::uint8_t { parameter, gradient, moment1, moment2, state };

/// One tensor among many that are read together, and where its numbers go.
struct tensor_read {
  tensor_kind what = tensor_kind::parameter;
  std::size_t slot = 0;
  std::span<float> out;
};

}  // namespace isotope
