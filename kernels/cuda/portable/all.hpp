#pragma once
/// The portable kernels of the cuda backend. An op that is missing here has only its reference kernel.
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <isotope/kernels/cuda/portable/attention.hpp>
#include <isotope/kernels/cuda/portable/attention_grad.hpp>
#include <isotope/kernels/cuda/portable/cross_entropy.hpp>
#include <isotope/kernels/cuda/portable/elementwise.hpp>
#include <isotope/kernels/cuda/portable/layer_norm.hpp>
#include <isotope/kernels/cuda/portable/matmul.hpp>
#include <isotope/kernels/cuda/portable/muon.hpp>
#include <isotope/kernels/cuda/portable/rms_norm.hpp>
#include <isotope/kernels/cuda/portable/softmax.hpp>
#include <isotope/kernels/cuda/portable/update.hpp>
