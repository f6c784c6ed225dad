#pragma once
/// Every kernel of the vulkan backend. A program finds those of an op by the op in library_ops (op/all.hpp).
#include <isotope/kernels/vulkan/native/all.hpp>
#include <isotope/kernels/vulkan/portable/all.hpp>
#include <isotope/kernels/vulkan/reference/all.hpp>
