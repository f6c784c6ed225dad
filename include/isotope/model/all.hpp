#pragma once
#include "gpt.hpp"
#include "mlp.hpp"
