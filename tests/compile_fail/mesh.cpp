// expect: error<.*'h.0.attn.c_attn.weight.*288,96.*96 along axis 0 do.*not divide by tensor 5:.*choose a divisor
// A layer that the devices of a tensor group cannot divide is named with its numbers.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

using loss = iso::model::gpt_loss<iso::model::gpt{1, 4, 96, 65, 8}, 1, 8>;
template struct iso::training<loss, iso::target<iso::backend::cpu, iso::precision::f32>,
                              iso::training_options{.mesh = {.data = 1, .tensor = 5}}>;
