#pragma once
/// The tensors that a session keeps.
#include <cstddef>
#include <cstdint>
#include <span>

namespace isotope {

/// The first four kinds exist for each parameter and are indexed as `parameters()`; `state` is indexed as `states()`.
enum class tensor_kind : std::uint8_t { parameter, gradient, moment1, moment2, state };

/// One of several tensors that are read together, and where its values are written.
struct tensor_read {
  tensor_kind what = tensor_kind::parameter;
  std::size_t slot = 0;
  std::span<float> out;
};

}  // namespace isotope
