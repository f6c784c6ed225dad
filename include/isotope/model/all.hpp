#pragma once
#include "bert.hpp"
#include "gpt.hpp"
#include "mlp.hpp"
