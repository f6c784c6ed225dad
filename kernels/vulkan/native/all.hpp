#pragma once
/// The native kernels of the vulkan backend: those that run on matrix units.
#include <isotope/kernels/vulkan/native/attention.hpp>
#include <isotope/kernels/vulkan/native/attention_grad.hpp>
#include <isotope/kernels/vulkan/native/attention_packed.hpp>
#include <isotope/kernels/vulkan/native/matmul.hpp>
