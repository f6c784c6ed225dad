#pragma once
/// The vector mathematics that cpu kernels are written with: element functions, reductions, conversions.
#include <isotope/kernels/cpu/math/convert.hpp>
#include <isotope/kernels/cpu/math/erf.hpp>
#include <isotope/kernels/cpu/math/exp.hpp>
#include <isotope/kernels/cpu/math/gelu_erf.hpp>
#include <isotope/kernels/cpu/math/gelu_tanh.hpp>
#include <isotope/kernels/cpu/math/log.hpp>
#include <isotope/kernels/cpu/math/map.hpp>
#include <isotope/kernels/cpu/math/sigmoid.hpp>
#include <isotope/kernels/cpu/math/silu.hpp>
#include <isotope/kernels/cpu/math/sine.hpp>
#include <isotope/kernels/cpu/math/sqrt.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/math/tanh.hpp>
