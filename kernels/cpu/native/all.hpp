#pragma once
/// The native kernel set of the cpu backend, written for the wide vectors and the caches of current processors. It is empty where the translation
/// unit may use neither AVX-512 nor AVX2 with FMA; then portable kernels run.
#include <isotope/kernels/cpu/native/adamw.hpp>
#include <isotope/kernels/cpu/native/add.hpp>
#include <isotope/kernels/cpu/native/attention.hpp>
#include <isotope/kernels/cpu/native/attention_grad.hpp>
#include <isotope/kernels/cpu/native/cross_entropy.hpp>
#include <isotope/kernels/cpu/native/div.hpp>
#include <isotope/kernels/cpu/native/exp.hpp>
#include <isotope/kernels/cpu/native/gelu.hpp>
#include <isotope/kernels/cpu/native/layer_norm.hpp>
#include <isotope/kernels/cpu/native/log.hpp>
#include <isotope/kernels/cpu/native/matmul.hpp>
#include <isotope/kernels/cpu/native/mul.hpp>
#include <isotope/kernels/cpu/native/muon.hpp>
#include <isotope/kernels/cpu/native/relu.hpp>
#include <isotope/kernels/cpu/native/rms_norm.hpp>
#include <isotope/kernels/cpu/native/scale.hpp>
#include <isotope/kernels/cpu/native/select.hpp>
#include <isotope/kernels/cpu/native/sigmoid.hpp>
#include <isotope/kernels/cpu/native/silu.hpp>
#include <isotope/kernels/cpu/native/softmax.hpp>
#include <isotope/kernels/cpu/native/sqrt.hpp>
#include <isotope/kernels/cpu/native/square.hpp>
#include <isotope/kernels/cpu/native/sub.hpp>
#include <isotope/kernels/cpu/native/sum.hpp>
#include <isotope/kernels/cpu/native/tanh.hpp>
