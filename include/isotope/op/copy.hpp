#pragma once
#include "../core/tape.hpp"

namespace isotope {
/// y[i] = x[i], where y is dense and row-major for any strides of x.
template <Machine M> constexpr tensor<M> contiguous(tensor<M> x, place at = place::current()) { return apply<op::copy>(at, {}, x); }
}  // namespace isotope
