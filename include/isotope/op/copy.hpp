#pragma once
#include "../core/tape.hpp"

namespace isotope {
/// y[i] = x[i], row-major without gaps, whatever the strides of x.
template <Machine M> constexpr tensor<M> contiguous(tensor<M> x, place at = place::current()) { return apply<op::copy>(at, {}, x); }
}  // namespace isotope
