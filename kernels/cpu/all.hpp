#pragma once
/// Every kernel of the cpu backend. A program finds those of an op by the op in library_ops (op/all.hpp).
#include <isotope/kernels/cpu/native/all.hpp>
#include <isotope/kernels/cpu/portable/all.hpp>
#include <isotope/kernels/cpu/reference/all.hpp>
