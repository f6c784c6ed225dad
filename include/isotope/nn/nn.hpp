#pragma once
/// Layers: functions of a scope and tensors. Parameter names and shapes follow the Hugging Face state dicts, linear weights (out,in).
#include "block.hpp"
#include "classify.hpp"
#include "linear.hpp"
#include "lora.hpp"
#include "losses.hpp"
#include "mlp.hpp"
#include "norm.hpp"
