#pragma once
// Arguments of the updates of adamw, sgd and muon.
#include <cstdint>

namespace isotope::cuda::gpu {

struct optimizer_arguments {
  std::uint64_t w, m, v, shadow, g;  // (count); m, v f32
  std::uint64_t norm, loss;          // () f32
  std::uint64_t scalars;
  std::int64_t count, decaying;  // the first elements decay
  float rate;                    // factor on the learning rate
  float size;                    // of muon: factor on the direction
  std::int32_t w_type, g_type;
  std::int32_t shadow_type;  // -1: there is no shadow
  std::int32_t clips;        // by the global norm
};

}  // namespace isotope::cuda::gpu
