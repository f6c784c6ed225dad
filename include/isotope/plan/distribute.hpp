#pragma once
/// Distribution over devices.
#include "../core/tape.hpp"

namespace isotope {

/// Shards, collectives: tensor parallelism and ZeRO insert them here, between differentiation and fusion. One device needs none.
constexpr void distribute(tape&) {}

}  // namespace isotope
