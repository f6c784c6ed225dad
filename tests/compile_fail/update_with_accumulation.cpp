// expect: error<.*"an update within_backward".*"keeps no gradient for later".*"micro-batches: set accumulate".*"to false"
// Updates within the backward pass do not keep gradients, so they cannot be combined with several micro-batches.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

using loss = iso::model::mlp_loss<iso::model::mlp{.inputs = 4, .hidden = 8, .layers = 2, .classes = 2}, 2>;
constexpr iso::training_options options{.clip = iso::clipping::none, .update = iso::update_policy::within_backward, .accumulate = true};
template struct iso::training<loss, iso::target<iso::backend::cpu, iso::precision::f32>, options>;
