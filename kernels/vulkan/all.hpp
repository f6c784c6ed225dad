#pragma once
/// Every kernel of the vulkan backend. Kernel lists are made of library_ops (op/all.hpp): a kernel whose op is not named there is in no list.
#include <isotope/kernels/vulkan/native/all.hpp>
#include <isotope/kernels/vulkan/portable/all.hpp>
#include <isotope/kernels/vulkan/reference/all.hpp>
