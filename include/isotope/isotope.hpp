#pragma once
/// isotope: transformers written once, planned by the C++ compiler. The public headers of model code, in reading order. Devices, failures and
/// plans made at run time come with a backend: selected.hpp, or backend/cpu.hpp.
// clang-format off
#include "core/precision.hpp"
#include "core/shape.hpp"
#include "core/machine.hpp"
#include "core/tensor.hpp"
#include "core/scope.hpp"
#include "core/tape.hpp"
#include "core/target.hpp"
#include "core/graph.hpp"
#include "core/step.hpp"
#include "train/batch.hpp"
#include "op/all.hpp"
#include "nn/nn.hpp"
#include "model/all.hpp"
#include "plan/program.hpp"
