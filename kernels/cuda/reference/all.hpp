#pragma once
/// The reference kernels of the cuda backend: plain code, one element or row per thread. The other sets are compared with them on a device.
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <isotope/kernels/cuda/reference/cast.hpp>
#include <isotope/kernels/cuda/reference/copy.hpp>
#include <isotope/kernels/cuda/reference/cumsum.hpp>
#include <isotope/kernels/cuda/reference/elementwise.hpp>
#include <isotope/kernels/cuda/reference/extremum.hpp>
#include <isotope/kernels/cuda/reference/fill.hpp>
#include <isotope/kernels/cuda/reference/momentum.hpp>
#include <isotope/kernels/cuda/reference/prod.hpp>
#include <isotope/kernels/cuda/reference/sum.hpp>
#include <isotope/kernels/cuda/reference/update.hpp>
