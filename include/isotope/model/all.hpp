#pragma once
#include "bert.hpp"
#include "gpt.hpp"
#include "llama.hpp"
#include "mlp.hpp"
