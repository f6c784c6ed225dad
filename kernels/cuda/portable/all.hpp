#pragma once
/// The portable kernels of the cuda backend. An op that is missing here has only its reference kernel.
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <isotope/kernels/cuda/portable/cast.hpp>
#include <isotope/kernels/cuda/portable/copy.hpp>
#include <isotope/kernels/cuda/portable/cross_entropy.hpp>
#include <isotope/kernels/cuda/portable/dropout.hpp>
#include <isotope/kernels/cuda/portable/embedding.hpp>
#include <isotope/kernels/cuda/portable/extremum.hpp>
#include <isotope/kernels/cuda/portable/layer_norm.hpp>
#include <isotope/kernels/cuda/portable/muon.hpp>
#include <isotope/kernels/cuda/portable/rms_norm.hpp>
#include <isotope/kernels/cuda/portable/rope.hpp>
#include <isotope/kernels/cuda/portable/softmax.hpp>
#include <isotope/kernels/cuda/portable/sum.hpp>
#include <isotope/kernels/cuda/portable/update.hpp>
