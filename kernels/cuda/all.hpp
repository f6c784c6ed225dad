#pragma once
/// Every kernel of the cuda backend. Kernel lists are made of library_ops (op/all.hpp): a kernel whose op is not named there is in no list.
#include <isotope/kernels/cuda/native/all.hpp>
#include <isotope/kernels/cuda/portable/all.hpp>
#include <isotope/kernels/cuda/reference/all.hpp>
