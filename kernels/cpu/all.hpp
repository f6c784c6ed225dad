#pragma once
/// Every kernel of the cpu backend. Kernel lists are made of library_ops (op/all.hpp): a kernel whose op is not named there is in no list.
#include <isotope/kernels/cpu/native/all.hpp>
#include <isotope/kernels/cpu/portable/all.hpp>
#include <isotope/kernels/cpu/reference/all.hpp>
