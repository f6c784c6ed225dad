#pragma once
/// The kernels of the cuda backend that use tensor cores.
#include <isotope/kernels/cuda/native/attention.hpp>
#include <isotope/kernels/cuda/native/attention_cached.hpp>
#include <isotope/kernels/cuda/native/attention_grad.hpp>
#include <isotope/kernels/cuda/native/attention_packed.hpp>
#include <isotope/kernels/cuda/native/matmul.hpp>
