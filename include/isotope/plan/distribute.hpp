#pragma once
/// Distribution over devices.
#include "../core/tape.hpp"

namespace isotope {

/// Inserts shards and collectives for tensor parallelism and ZeRO, between differentiation and fusion. One device needs none.
constexpr void distribute(tape&) {}

}  // namespace isotope
