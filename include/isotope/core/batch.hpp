#pragma once
/// What goes into a training session besides scalars, and which tensors come out of it.
#include <cstddef>
#include <cstdint>
#include <span>

namespace isotope {

/// Token ids and what each is to predict: (B,S) row-major; a negative target is ignored.
struct batch {
  std::span<const std::int32_t> tokens, targets;
};

/// The tensors that a session keeps for every parameter.
enum class tensor_kind : std::uint8_t { parameter, gradient, moment1, moment2 };

/// One tensor among many that are read together, and where its numbers go.
struct tensor_read {
  tensor_kind what = tensor_kind::parameter;
  std::size_t slot = 0;
  std::span<float> out;
};

}  // namespace isotope
